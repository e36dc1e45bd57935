"""The same rules apply to subagents and forks: none of the bypass attempts succeeds when they make it.

Claude Code's subagents and forked sessions of both harnesses make every call of the corpus of gate-1, protected by the
gate only. They are judged by the effects in the tree. A subagent may do no more than its agent.
"""

from typing import Final

from bench.prove.figure import Figure
from bench.support.bypass import corpus, session_attempts
from bench.support.bypass.session_attempts import FORK, SUBAGENT, BypassFindings
from footplate.domain.json import Json

_ACTORS: Final = (("claude", SUBAGENT), ("native", FORK), ("claude", FORK))


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    batches = list(session_attempts.make_batches(corpus.load_cases()))
    async with session_attempts.open_sessions() as models:
        for harness, actor in _ACTORS:
            await models.check_control(harness, actor)
            for batch in batches[:1] if quick else batches:
                await models.attempt_batch(harness, actor, batch)
    return _figure(models.found, len({batch[0].group for batch in batches}))


def _figure(found: BypassFindings, groups: int) -> Figure:
    by_actor = "; ".join(
        f"{found.calls[f'{harness} {who}']} calls of a {who} of `{harness}`: "
        f"{found.decisions[f'{harness} {who} deny']} denied, {found.decisions[f'{harness} {who} ask']} asked, "
        f"{found.decisions[f'{harness} {who} allow']} allowed"
        for harness, who in _ACTORS
    )
    headline = f"{found.calls.total():,} attacks by subagents and forks: 0 forbidden effects"
    summary = f"{groups} groups of attacks; {by_actor}; 0 forbidden effects"
    if found.faults:
        headline = f"{found.calls.total():,} attacks by subagents and forks: {len(found.faults)} faults"
        summary = f"{len(found.faults)} faults, the first: {found.faults[0]}"
    harnesses: dict[str, Json] = {
        harness: sum(found.calls[f"{each} {who}"] for each, who in _ACTORS if each == harness)
        for harness in ("native", "claude")
    }
    details: dict[str, Json] = {"faults": [*found.faults], "said": dict(found.decisions), "harnesses": harnesses}
    return Figure(headline=headline, summary=summary, holds=not found.faults, details=details)
