"""Subagents and forks meet the same gate: the corpus once more, made by them, and what they are told is no looser.

Claude Code's subagents make every call of the corpus, and so do sessions that were forked off another one, of both
harnesses; judged by what was done, in the tree itself, with nothing but the gate in the way. What an agent may not do
by itself its subagent may not do either.
"""

from typing import Final

from bench.prove.figure import Figure
from bench.support.bypass import corpus, sessions
from bench.support.bypass.sessions import FORK, SUBAGENT, Found
from footplate.domain.json import Json

_WAYS: Final = (("claude", SUBAGENT), ("native", FORK), ("claude", FORK))


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    batches = list(sessions.batches(corpus.cases()))
    async with sessions.opened() as models:
        for harness, who in _WAYS:
            await models.control(harness, who)
            for batch in batches[:1] if quick else batches:
                await models.attempt(harness, who, batch)
    return _figure(models.found, len({batch[0].group for batch in batches}))


def _figure(found: Found, groups: int) -> Figure:
    told = "; ".join(
        f"{found.calls[f'{harness} {who}']} calls of a {who} of `{harness}`: "
        f"{found.said[f'{harness} {who} deny']} denied, {found.said[f'{harness} {who} ask']} asked, "
        f"{found.said[f'{harness} {who} allow']} allowed"
        for harness, who in _WAYS
    )
    text = f"{groups} groups of attacks; {told}; 0 forbidden effects"
    if found.faults:
        text = f"{len(found.faults)} faults, the first: {found.faults[0]}"
    harnesses: dict[str, Json] = {
        harness: sum(found.calls[f"{each} {who}"] for each, who in _WAYS if each == harness)
        for harness in ("native", "claude")
    }
    details: dict[str, Json] = {"faults": [*found.faults], "said": dict(found.said), "harnesses": harnesses}
    return Figure(text=text, holds=not found.faults, details=details)
