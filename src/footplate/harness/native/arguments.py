"""The arguments of a model's tool call: text that may not be what it should be. Pure."""

import json

from pydantic_ai.messages import ToolCallPart

from footplate.domain.json import JsonObject, clean_object


def arguments_of(call: ToolCallPart) -> JsonObject | None:
    """None when they are no JSON object."""
    if isinstance(call.args, dict):
        return clean_object(call.args)
    if not call.args:
        return {}
    try:
        parsed = json.loads(call.args)
    except ValueError:
        return None
    return clean_object(parsed) if isinstance(parsed, dict) else None


def invalid_arguments(call: ToolCallPart) -> str:
    try:
        json.loads(str(call.args))
    except ValueError as error:
        return (
            f"The input of {call.tool_name} is not valid JSON ({error}). It may have been cut off by the token limit."
        )
    return f"The input of {call.tool_name} must be a JSON object."
