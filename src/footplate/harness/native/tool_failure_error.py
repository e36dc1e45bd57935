"""Defines `ToolFailure`, the exception that a tool raises to report a failure to the model."""


class ToolFailure(Exception):
    """The tool call failed. The message tells the model why."""
