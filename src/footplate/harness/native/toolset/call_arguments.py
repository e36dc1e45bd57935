"""Parses the arguments of a model's tool call, which may be invalid JSON."""

import json

from pydantic_ai.messages import ToolCallPart

from footplate.domain.json import JsonObject, clean_object


def parse_arguments(call: ToolCallPart) -> JsonObject | None:
    """The arguments, or None if they are not a JSON object."""
    if isinstance(call.args, dict):
        return clean_object(call.args)
    if not call.args:
        return {}
    try:
        parsed = json.loads(call.args)
    except ValueError:
        return None
    return clean_object(parsed) if isinstance(parsed, dict) else None


def invalid_arguments_message(call: ToolCallPart) -> str:
    try:
        json.loads(str(call.args))
    except ValueError as error:
        return f"The input of {call.tool_name} is not valid JSON ({error}). The token limit may have truncated it."
    return f"The input of {call.tool_name} must be a JSON object."
