"""Telemetry for the operator: logs, metrics, traces and error reports, one module each.

Only `logs` is loaded with the package. A process loads the libraries behind the others when it uses them.
"""

from footplate.telemetry.logging_config import configure_logging

__all__ = ["configure_logging"]
