"""The Python hooks that come along. Each is a function of what a hook is told and of its own `options`."""

import json
from collections.abc import Mapping
from typing import Any, Final

_MOST_KEPT: Final = 10_000


def audit(told: Mapping[str, Any], _options: Mapping[str, Any]) -> dict[str, Any]:
    """What a call was made with goes to the audit trail, which has only its hash otherwise."""
    kept = {name: told[name] for name in ("tool_input", "tool_response", "prompt", "message") if name in told}
    text = json.dumps(kept)
    return {"audit": kept if len(text) <= _MOST_KEPT else {"cut": text[:_MOST_KEPT]}}


def metrics(told: Mapping[str, Any], _options: Mapping[str, Any]) -> dict[str, Any]:
    """Counted as `footplate_hook_counts`, by the moment and the tool."""
    about = told.get("tool_name")
    return {"metrics": {f"{told['hook_event_name']}.{about}" if about else told["hook_event_name"]: 1}}


def validation(told: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """A call's input has to fit the JSON schema of the option `schema`."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match
    from referencing import Registry

    Draft202012Validator.check_schema(options["schema"])
    # A registry of its own: what a schema refers to elsewhere is not fetched.
    validator = Draft202012Validator(options["schema"], registry=Registry())
    wrong = best_match(validator.iter_errors(told.get("tool_input")))
    if wrong is None:
        return {}
    where = "".join(f"/{step}" for step in wrong.absolute_path)
    reason = f"The input is not as it has to be{f' at {where}' if where else ''}: {wrong.message[:500]}."
    return {"decision": "block", "reason": reason}
