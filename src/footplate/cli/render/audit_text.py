"""Describes entries of the audit trail as short text: the decision, who or what decided, and on what. The text is not
escaped.
"""

from typing import Final

from footplate.client import AuditEntry
from footplate.domain.policy.approvals import DECIDED_BY_TIMEOUT, DECIDED_BY_TURN

_OUTCOMES: Final = {"allow": "allowed", "ask": "asked", "deny": "denied", "edit": "edited", "block": "blocked"}
_AUTOMATIC_DECIDERS: Final = {DECIDED_BY_TIMEOUT: "timeout", DECIDED_BY_TURN: "server"}


def describe_outcome(entry: AuditEntry) -> str:
    if entry.kind in {"policy", "change"}:
        return "changed"
    if entry.kind == "terminal":
        return "opened" if (entry.content or {}).get("action") == "terminal.open" else "attached"
    if entry.kind == "sign_in":
        return "refused" if entry.outcome == "deny" else "allowed"
    return "refused" if entry.kind == "refusal" else _OUTCOMES.get(entry.outcome or "", entry.outcome or "")


def describe_decider(entry: AuditEntry) -> str:
    """Return `rule`, `hook` or `gate` (a built-in check or a default) for a decision of the gate, and otherwise
    `member`, `timeout` or `server`.
    """
    if entry.kind == "hook" or (entry.content or {}).get("hook"):
        return "hook"
    if entry.kind == "error":
        return "server"
    if entry.kind == "decision":
        return "rule" if entry.layer else "gate"
    return _AUTOMATIC_DECIDERS.get(entry.principal or "", "member")


def describe_subject(entry: AuditEntry) -> str:
    """Return the call, the change or the error, and the reason for the decision."""
    content = entry.content or {}
    if entry.kind == "policy":
        parts = ["rules of the organisation"]
    elif entry.kind == "change":
        parts = [f"{content['action']} {content.get('id') or ''}" if "action" in content else entry.layer or ""]
    elif entry.kind == "terminal":
        parts = ["terminal" if content.get("action") == "terminal.open" else "terminal, to type"]
    elif entry.kind == "sign_in":
        parts = [content.get(name, "") for name in ("action", "method", "reason", "client_name", "address")]
    elif entry.kind == "refusal":
        parts = [f"{content.get('method', '')} {content.get('path', '')}", content.get("message", "")]
    elif entry.kind == "error":
        parts = [content.get("error", ""), str(content.get("status", "")).replace("_", " ")]
        parts.append(f"attempt {content['attempt']}" if "attempt" in content else "")
    else:
        parts = [_describe_call(entry), _describe_reason(entry)]
    return " · ".join(text for part in parts if (text := str(part).strip()))


def _describe_call(entry: AuditEntry) -> str:
    tool = entry.tool or ""
    if entry.kind == "hook":
        return f"{(entry.content or {}).get('hook_event', '')} {tool}"
    return f"{tool} {'(input no longer stored)' if entry.input_summary is None else entry.input_summary}"


def _describe_reason(entry: AuditEntry) -> str:
    content = entry.content or {}
    if entry.kind == "answer":
        edited = "with an edited input" if entry.input_hash else ""
        rule = f"for this session: {content['session_rule']}" if content.get("session_rule") else ""
        return " ".join(text for text in (edited, rule, str(content.get("deny_message") or "")) if text)
    source = " ".join(text for text in (entry.layer, content.get("hook") or content.get("rule")) if text)
    return ": ".join(text for text in (source, content.get("reason")) if text)
