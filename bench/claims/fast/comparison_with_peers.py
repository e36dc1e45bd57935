"""Footplate beats OpenHands, opencode and langgraph on first token and recovery, and matches opencode's session rate.

The systems run one after the other. Footplate's sessions have the sandbox and snapshots on and begin with an empty
working tree. The table also shows sessions with a project checkout, which take longer. After a kill, Footplate must end
the tool's process sooner than the peer, continue the session where the peer does not, and report that the call was
interrupted.
"""

from collections.abc import Sequence
from typing import Final

from bench.compare.measurements import SYSTEMS, KillResult, Plan, SystemResult, measure_system
from bench.compare.page import render_table, write_page
from bench.prove.figure import Figure

_SESSION_RATE_PEER: Final = "opencode"
"""The peer whose session rate Footplate has to reach."""


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    plan = Plan.of(quick=quick)
    results = [await measure_system(kind, plan) for kind in SYSTEMS]
    print(render_table(results, plan), end="")
    if not quick:
        write_page(results, plan, quick=quick)
    return judge_results(results, quick=quick)


def judge_results(results: Sequence[SystemResult], *, quick: bool) -> Figure:
    """Compares the first system with its peers, not with its own variant. A small sample is not judged on speed."""
    ours = results[0]
    peers = [result for result in results if not result.name.startswith(ours.name)]
    rows_behind = {peer.name: _behind_after_kill(ours, peer) for peer in peers}
    if not quick:
        for peer in peers:
            rows_behind[peer.name] += _behind_in_time(ours, peer)
    missed = [f"{name} in {', '.join(rows)}" for name, rows in rows_behind.items() if rows]
    tokens = [peer.first_token_ms[0] for peer in peers]
    rate = next((f" against {peer.sessions_per_second:.2f}" for peer in peers if peer.name == _SESSION_RATE_PEER), "")
    headline = (
        f"first token {ours.first_token_ms[0]:.0f} ms against {min(tokens):.0f} to {max(tokens):.0f}; "
        f"{ours.sessions_per_second:.2f} sessions/s{rate}"
    )
    if missed:
        headline = f"Footplate is not ahead of {len(missed)} of {len(peers)} peers in every row"
    return Figure(
        headline=headline,
        summary="; ".join([*map(_describe, results), f"not ahead of: {'; '.join(missed) or 'none'}"]),
        holds=not missed,
        details={result.name: result.to_json() for result in results},
    )


def _behind_in_time(ours: SystemResult, peer: SystemResult) -> list[str]:
    pairs = zip(ours.first_token_ms, peer.first_token_ms, strict=True)
    rows = [f"first token of turn {turn}" for turn, (own, other) in enumerate(pairs, start=1) if own >= other]
    if peer.name == _SESSION_RATE_PEER and ours.sessions_per_second < peer.sessions_per_second:
        rows.append("sessions/s")
    return rows


def _behind_after_kill(ours: SystemResult, peer: SystemResult) -> list[str]:
    own, other = ours.kill, peer.kill
    ended = own.tool_ended_after is not None and (
        other.tool_ended_after is None or own.tool_ended_after < other.tool_ended_after
    )
    continued = _continues(own) and not _continues(other)
    recorded = own.record.state == "settled"
    rows = {"the end of the tool": ended, "continuing by itself": continued, "the record of the call": recorded}
    return [name for name, ahead in rows.items() if not ahead]


def _continues(kill: KillResult) -> bool:
    """A session that runs the command again does not count: the command may have side effects."""
    return kill.continued_after is not None and not kill.ran_again


def _describe(result: SystemResult) -> str:
    new, again = result.first_token_ms
    ended = result.kill.tool_ended_after
    tool = "lived on" if ended is None else f"was dead after {ended:.1f} s"
    continued = "continued by itself" if _continues(result.kill) else "did not continue"
    if result.kill.ran_again:
        continued = "ran the command again"
    return (
        f"{result.name} {result.version}: first token {new:.0f} / {again:.0f} ms, {result.sessions_per_second:.2f} "
        f"sessions/s with one tool call, the killed server's tool {tool}, the session {continued}"
    )
