"""Prints triggers and the deliveries to them."""

from collections.abc import Sequence
from datetime import UTC, datetime

from footplate.cli.render import terminal_io, value_formatting
from footplate.cli.render.table_printing import Cell, UntrustedText, print_details, print_rows
from footplate.client import Trigger, TriggerDelivery


def print_triggers(found: Sequence[Trigger]) -> None:
    if not found:
        terminal_io.print_note(
            "No triggers yet. Create one: footplate triggers create --name review 'Review ${payload.url}'"
        )
        return
    rows: list[list[Cell]] = [
        [one.id, _state(one), one.session_id or "a new one", f"{one.max_per_minute}/min", UntrustedText(one.name)]
        for one in found
    ]
    print_rows(["ID", "STATUS", "SESSION", "LIMIT", "NAME"], rows)


def print_trigger(trigger: Trigger, address: str, member_name: str) -> None:
    agent, expires = trigger.agent, trigger.old_secret_expires_at
    shown: dict[str, Cell] = {
        "id": trigger.id,
        "name": UntrustedText(trigger.name),
        "description": UntrustedText(trigger.description or ""),
        "status": _state(trigger),
        "address": UntrustedText(address),
        "condition": UntrustedText(trigger.condition or ""),
        "limit": f"{trigger.max_per_minute} deliveries per minute",
        "session": trigger.session_id or "a new one for each delivery",
        "title": UntrustedText(trigger.title or ""),
        "agent": "" if agent is None else f"{agent.id} (version {agent.version})",
        "environment": trigger.environment_id or "",
        "work": UntrustedText(_describe_work(trigger)),
        "runs_as": UntrustedText(member_name, f" ({trigger.runs_as})") if member_name else trigger.runs_as,
        "old_secret": f"valid until {expires:%F %H:%M} UTC" if expires and expires > datetime.now(UTC) else "",
    }
    print_details({name: value for name, value in shown.items() if value not in ("", UntrustedText(""))})


def print_deliveries(found: Sequence[TriggerDelivery]) -> None:
    if not found:
        terminal_io.print_note("No deliveries.")
        return
    rows: list[list[Cell]] = [
        [
            UntrustedText(one.delivery_id),
            f"[red]{one.outcome}[/]" if one.outcome == "failed" else one.outcome,
            str(one.attempts),
            value_formatting.format_age(one.created_at),
            one.session_id or "",
            UntrustedText("" if one.error is None else one.error.message),
        ]
        for one in found
    ]
    print_rows(["DELIVERY", "OUTCOME", "ATTEMPTS", "AGE", "SESSION", "WHY"], rows)


def describe_state(trigger: Trigger) -> str:
    if trigger.archived_at is not None:
        return "It is removed. Its sessions and deliveries stay."
    if trigger.status == "paused":
        return f"It is paused. Resume it with: footplate triggers update {trigger.id} --resume"
    return "It accepts deliveries in your name."


def _state(trigger: Trigger) -> str:
    if trigger.archived_at is not None:
        return "removed"
    return f"[{'green' if trigger.status == 'active' else 'yellow'}]{trigger.status}[/]"


def _describe_work(trigger: Trigger) -> str:
    texts = []
    for step in trigger.steps:
        blocks = step.get("content") or []
        texts.append(
            str(step.get("command") or " ".join(str(block.get("text", "")) for block in blocks) or step["kind"])
        )
    return value_formatting.title_from_prompt(" · ".join(texts))
