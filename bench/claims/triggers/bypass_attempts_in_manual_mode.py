"""No known way to bypass a command rule succeeds through the steps of a paused session that a person runs one by one.

The commands are those of `rule_bypass_attempts`: as shell steps in the background, as shell steps on the session's
terminal, and as calls of Claude in prompt steps. Without rules, the same way must have an effect. The Claude CLI on a
terminal is not shipped, and the documentation must say so.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench.prove.figure import Figure, require
from bench.support.bypass import corpus, manual_attempts, session_attempts
from bench.support.bypass.manual_attempts import BACKGROUND, SHELL, TERMINAL, ManualSessions
from bench.support.bypass.session_attempts import AGENT
from footplate.domain.json import Json

_WAYS: Final = (("unsandboxed", SHELL, BACKGROUND), ("unsandboxed", "claude", AGENT), ("sandbox", SHELL, TERMINAL))
_NOT_SHIPPED: Final = "- The Claude CLI on a terminal."
_DOCS: Final = Path(__file__).resolve().parents[3] / "docs" / "terminals.md"
_QUICK_STRIDE: Final = 30


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    _, _, named = _DOCS.read_text().partition("## What is not there")
    require(holds=_NOT_SHIPPED in named, otherwise=f"{_DOCS.name} does not say that the Claude CLI is not shipped")
    cases = corpus.load_cases()
    batches = list(session_attempts.make_batches(cases[::_QUICK_STRIDE] if quick else cases))
    calls: dict[str, Json] = {}
    decisions: dict[str, Json] = {}
    faults: list[str] = []
    for environment, harness, caller in _WAYS:
        began = time.monotonic()
        async with manual_attempts.open_manual_sessions(environment) as sessions:
            await _attempt_all(sessions, harness, caller, batches)
            name = f"{harness} {caller}"
            calls[name] = sessions.found.calls[name]
            decisions |= {**sessions.found.decisions}
            faults += sessions.found.faults
        print(f"  {name}: {calls[name]} calls, {time.monotonic() - began:.0f} s", flush=True)
    return _figure(calls, decisions, faults)


async def _attempt_all(
    sessions: ManualSessions, harness: str, caller: str, batches: Sequence[Sequence[corpus.BypassCase]]
) -> None:
    await sessions.check_control(harness, caller)
    for batch in batches:
        await sessions.attempt_batch(harness, caller, batch)


def _figure(calls: dict[str, Json], decisions: dict[str, Json], faults: list[str]) -> Figure:
    counts = ", ".join(f"{count} as `{name}`" for name, count in calls.items())
    headline = f"{sum(count for count in calls.values() if isinstance(count, int)):,} calls: 0 forbidden effects"
    summary = (
        f"the corpus through queued steps of paused sessions, run one by one: {counts}; 0 forbidden effects; the "
        f"Claude CLI on a terminal is not shipped, and the documentation says so"
    )
    if faults:
        headline, summary = f"{len(faults)} forbidden effects", f"{len(faults)} faults, the first: {faults[0]}"
    details: dict[str, Json] = {"calls": calls, "decisions": decisions, "faults": [*faults]}
    return Figure(headline=headline, summary=summary, holds=not faults, details=details)
