"""Formats tool calls, times, token counts and costs as short text."""

import re
from datetime import UTC, datetime
from typing import Final

from footplate.client.response_models import Event, Usage
from footplate.domain.text.visible_text import show_line

_MAX_PERSON_LENGTH: Final = 40
_EXIT_CODE_LINE: Final = re.compile(r"\[exit code \d+\]")
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_EXACT_BELOW: Final = 10.0
_MICRO: Final = 1_000_000


def describe_decision(decision: Event) -> str:
    """Describes a decision on a call that needed approval, such as `allowed by Ada`. The names are escaped."""
    by = " by the time limit" if decision.decided_by == "clock" else _by(decision.decided_by_name)
    if decision.result != "allow":
        return f"denied{by}"
    edited = f"{describe_editor(decision)}, " if decision.edited_by_name else "edited and "
    edited = "" if decision.updated_input is None else edited
    return f"{edited}allowed{by}{' for this session' if decision.session_rule else ''}"


def describe_author(reply: Event) -> str:
    """Describes who answered a question."""
    return f"answered{' by the time limit' if reply.answered_by == 'clock' else _by(reply.answered_by_name)}"


def describe_editor(decision: Event) -> str:
    """Describes who edited the input of a call: the person who allowed it, unless another one is named."""
    return f"edited{_by(decision.edited_by_name or decision.decided_by_name)}"


def _by(name: str | None) -> str:
    return f" by {show_line(name, _MAX_PERSON_LENGTH)}" if name else ""


def failure_reason(result: Event, name: str) -> str:
    """Returns the line that explains a failed call: the last line of a command, or the first of another tool."""
    lines = [line for line in result.text.splitlines() if line.strip() and not _EXIT_CODE_LINE.fullmatch(line.strip())]
    if not lines:
        return result.text.strip()
    return (lines[-1] if name == "bash" else lines[0]).strip()


def format_seconds(amount: float) -> str:
    if amount < _EXACT_BELOW:
        return f"{amount:.1f}s"
    if amount < _MINUTE:
        return f"{amount:.0f}s"
    return f"{amount // _MINUTE:.0f}m {amount % _MINUTE:02.0f}s"


def format_age(time: datetime, now: datetime | None = None) -> str:
    passed = max(0.0, ((now or datetime.now(UTC)) - time).total_seconds())
    for size, unit in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "m")):
        if passed >= size:
            return f"{passed // size:.0f}{unit}"
    return f"{passed:.0f}s"


def format_time(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S %Z} · {format_age(time)} ago"


def format_tokens(usage: Usage) -> str:
    """Formats token counts and the cost. An unknown cost is omitted, because it is not zero."""
    cached = f" ({usage.cache_read_input_tokens:,} cached)" if usage.cache_read_input_tokens else ""
    parts = [f"{usage.input_tokens:,} in{cached}", f"{usage.output_tokens:,} out"]
    if usage.cost_microusd is not None:
        parts.append(format_cost(usage.cost_microusd))
    return " · ".join(parts)


def format_cost(microusd: int) -> str:
    dollars = microusd / _MICRO
    return f"${dollars:,.2f}" if dollars >= 1 else f"${dollars:.4f}"


def title_from_prompt(prompt: str) -> str:
    first = " ".join(next((line for line in prompt.splitlines() if line.strip()), "").split())
    return first if len(first) <= 80 else f"{first[:79]}…"  # noqa: PLR2004 - fits in a table
