"""The built-in Python hooks. Each is a function of the hook's input and its `options`."""

import json
from collections.abc import Mapping
from typing import Any, Final

_MAX_AUDIT_CHARACTERS: Final = 10_000


def audit(payload: Mapping[str, Any], _options: Mapping[str, Any]) -> dict[str, Any]:
    """Add the input of a call, its result or the prompt to the audit trail, which otherwise contains only a hash."""
    content = {name: payload[name] for name in ("tool_input", "tool_response", "prompt", "message") if name in payload}
    text = json.dumps(content)
    return {"audit": content if len(text) <= _MAX_AUDIT_CHARACTERS else {"cut": text[:_MAX_AUDIT_CHARACTERS]}}


def members(payload: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Block the call or the prompt unless the option `only` has the id or the name of the turn's author."""
    author = payload.get("principal") or {}
    if not {author.get("id"), author.get("name")}.isdisjoint(options["only"]):
        return {}
    return {"decision": "block", "reason": f"It is not permitted in a turn of {author.get('name') or 'this member'}."}


def metrics(payload: Mapping[str, Any], _options: Mapping[str, Any]) -> dict[str, Any]:
    """Count hook runs in the metric `footplate_hook_counts`, by event and tool."""
    tool = payload.get("tool_name")
    return {"metrics": {f"{payload['hook_event_name']}.{tool}" if tool else payload["hook_event_name"]: 1}}


def validation(payload: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Block a call whose input does not match the JSON schema in the option `schema`."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match
    from referencing import Registry

    Draft202012Validator.check_schema(options["schema"])
    # With an empty registry, references to other schemas are not fetched.
    validator = Draft202012Validator(options["schema"], registry=Registry())
    error = best_match(validator.iter_errors(payload.get("tool_input")))
    if error is None:
        return {}
    where = "".join(f"/{step}" for step in error.absolute_path)
    reason = f"The input does not match the schema{f' at {where}' if where else ''}: {error.message[:500]}."
    return {"decision": "block", "reason": reason}
