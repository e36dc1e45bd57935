"""How a tool says that it could not do what was asked."""


class ToolFailure(Exception):
    """The call failed; the text tells the model why."""
