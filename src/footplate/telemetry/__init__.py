"""What the operator sees: log lines, metrics, traces and reported exceptions, each in its file.

Only `logs` is loaded with the package. The libraries behind the others are loaded by a process that uses them.
"""

from footplate.telemetry.logs import configure_logging

__all__ = ["configure_logging"]
