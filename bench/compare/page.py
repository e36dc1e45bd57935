"""Writes docs/comparison.md: the table of one run, its versions and date, and the differences between the systems."""

import datetime as dt
from collections.abc import Callable, Sequence
from typing import Final

from bench.compare.measurements import AT_ONCE, Plan, SystemResult
from bench.support.speed.measurement import ROOT

PAGE: Final = ROOT / "docs" / "comparison.md"
_HEAD: Final = """\
# Comparison

This page compares Footplate with three other servers that do the same work on the same machine, and shows what survives
`kill -9` in the middle of a tool call. `just compare` installs the others at these versions, runs everything and
writes this page. `just prove fast-8` checks the claim in [evidence.md](evidence.md).
"""
_SAMPLE: Final = """
**This is a small sample from a busy machine. It shows what each system does, not how fast it is.**
"""
_NOTES: Final = """
## How it is measured

- Every system gets the same prompts from the same HTTP client. A scripted model on loopback speaks Anthropic's wire
  format to each of them. The others run with clean environment variables, no real API key, no telemetry, and a proxy
  address where nothing listens.
- First token: the time from the request until the client receives the first text. Turn 1 is in a new session.
- Sessions: each one is created, runs `echo` once with the shell tool, and ends with a text reply. The measurement fails
  unless the second model request of every session contains the command's output.
- CPU: user and system time of the server and of every process that it started. For Footplate this includes PostgreSQL,
  Redis and Temporal. The model and the client are not counted.
- Kill: SIGKILL to the server 12 s after its tool started `sleep`. For Footplate, the api and the worker are killed
  together. Then the server is started again, and the client sends nothing.

## How the systems differ

| | Footplate | OpenHands agent-server | opencode | langgraph dev |
|---|---|---|---|---|
| where the tool runs | in a bubblewrap sandbox | on the host, in tmux | on the host | on the host |
| files | a new working tree for each session | one directory for all | one directory for all | one directory for all |
| snapshot of the files | with each call that writes | none | off | none |
| log | PostgreSQL, committed with fsync | one JSON file for each event | SQLite | in memory, on disk every 10 s |
| processes | api, worker and three stores | one, and tmux | one | one |

- A Footplate session on a project checks out a working tree of its own in its first turn. The second column shows what
  that costs. The others have nothing like it, so `fast-8` compares the first column, whose sessions begin with an empty
  tree.
- Footplate's stores are not killed. They have crash tests of their own: `just prove core-2`.
- OpenHands' server is meant to run inside a sandbox, and opencode on a developer's machine: neither promises to survive
  a kill. `langgraph dev` is a development server. LangGraph's production server keeps its threads in PostgreSQL; it
  needs a licence or an account, so it is not compared.
- A run of `langgraph dev` waits in a queue that is polled about once a second. That is most of its time to
  first token. After a kill, a run that was already on disk repeats its tool call. Any other run is lost.
- opencode's own snapshots are off: with them, as is its default in a repository, 16 sessions with one tool call ran at
  0.85 a second instead of 3.51, and took 944 ms of CPU each instead of 210 (2026-11-17, a small sample).
- OpenHands' browser and editor services are off. opencode gets a title for each session, so it does not ask the model
  for one.
"""


def write_page(results: Sequence[SystemResult], plan: Plan, *, quick: bool) -> None:
    date = dt.datetime.now(dt.UTC).date().isoformat()
    size = (
        f"\nMeasured on {date}: medians of {plan.two_turn_sessions} sessions of two turns; {plan.tool_sessions} "
        f"sessions with one tool call each, {AT_ONCE} at once; one kill.\n"
    )
    PAGE.write_text(_HEAD + (_SAMPLE if quick else "") + size + "\n" + render_table(results, plan) + _NOTES)


def render_table(results: Sequence[SystemResult], plan: Plan) -> str:
    rows: dict[str, Callable[[SystemResult], str]] = {
        "version": lambda result: result.version,
        "first token p50, turn 1 / 2": lambda result: " / ".join(f"{ms:,.0f}" for ms in result.first_token_ms) + " ms",
        "`kill -9`: the tool's process": lambda result: _describe_tool(result, plan),
        "the call after a restart": lambda result: result.kill.record.text,
        "the session continues by itself": _describe_continuation,
        "sessions/s with one tool call": lambda result: f"{result.sessions_per_second:.2f}",
        "CPU per session": lambda result: f"{result.cpu_ms_per_session:,.0f} ms",
    }
    lines = [["", *(result.name for result in results)], ["---"] * (len(results) + 1)]
    lines += [[title, *(render(result) for result in results)] for title, render in rows.items()]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _describe_tool(result: SystemResult, plan: Plan) -> str:
    ended = result.kill.tool_ended_after
    return f"alive after {plan.tool_ends_within:g} s" if ended is None else f"dead after {ended:.1f} s"


def _describe_continuation(result: SystemResult) -> str:
    continued = result.kill.continued_after
    if result.kill.ran_again:
        return "it runs the command a second time"
    return "no" if continued is None else f"yes, {continued:.1f} s after the restart began"
