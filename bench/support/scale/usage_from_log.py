"""Computes usage reports from the rows of turns and the events of the log, without the totals of the product.

A report over HTTP is compared with these figures line by line, for every grouping, with filters and parts of a period.
"""

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any, Final
from urllib.parse import urlencode

import asyncpg
import orjson

from bench.prove.figure import require
from bench.support.minimal_client import MinimalClient
from footplate.domain.sessions import events as ev

_CALLS: Final = (ev.AGENT_TOOL_USE, ev.AGENT_MCP_TOOL_USE, ev.AGENT_CUSTOM_TOOL_USE)
_RESULTS: Final = (ev.AGENT_TOOL_RESULT, ev.AGENT_MCP_TOOL_RESULT, ev.USER_CUSTOM_TOOL_RESULT)
_CALL_IDS: Final = ("tool_use_id", "mcp_tool_use_id", "custom_tool_use_id")
_LIMITS: Final = ("max_iterations", "timeout_seconds", "max_retries", "mode")
GROUPINGS: Final = ("agent", "model", "harness", "member", "project", "parameters", "status", "day", "hour", "session")
_FILTERS: Final = ("agent", "model", "member", "project", "status", "session")


@dataclass(frozen=True, slots=True)
class LoggedTurn:
    values: dict[str, Any]
    """The turn's value of each grouping."""
    created_at: datetime
    figures: Counter[str]
    tools: dict[str, list[int]]
    """By tool: calls and failed calls."""


async def read_turns(database: asyncpg.Connection) -> list[LoggedTurn]:
    calls: dict[str, list[tuple[str, str]]] = defaultdict(list)
    succeeded: dict[str, bool] = {}
    for row in await database.fetch(
        "select turn_id, event_id, type, body::text from events where type = any($1) and ref_seq is null",
        [*_CALLS, *_RESULTS],
    ):
        body = orjson.loads(row["body"])
        if row["type"] in _RESULTS:
            succeeded[next(str(body[name]) for name in _CALL_IDS if name in body)] = not body.get("is_error")
        else:
            server = f"mcp__{body['mcp_server_name']}__" if row["type"] == ev.AGENT_MCP_TOOL_USE else ""
            calls[row["turn_id"]].append((row["event_id"], server + body["name"]))
    return [
        _logged_turn(row, calls[row["id"]], succeeded)
        for row in await database.fetch("select *, config::text as configuration from turns order by created_at")
    ]


def _logged_turn(row: Any, calls: Sequence[tuple[str, str]], succeeded: dict[str, bool]) -> LoggedTurn:
    config = orjson.loads(row["configuration"])
    limits = {name: config[name] for name in _LIMITS if config.get(name) is not None}
    tools: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for event_id, name in calls if row["ended_at"] else ():
        tools[name][0] += 1
        tools[name][1] += not succeeded.get(event_id, False)
    created_at = row["created_at"]
    return LoggedTurn(
        values={
            "agent": config["agent_id"],
            "model": config["model"],
            "harness": config["harness"],
            "member": row["principal"],
            "project": config["projects"][0]["id"] if config["projects"] else None,
            "parameters": {**config["model_parameters"], **limits},
            "status": row["status"],
            "day": f"{created_at:%Y-%m-%d}",
            "hour": f"{created_at:%Y-%m-%dT%H}:00:00Z",
            "session": row["session_id"],
        },
        created_at=created_at,
        figures=Counter(
            turns=1,
            iterations=row["requests"],
            input_tokens=row["input_tokens"],
            output_tokens=row["output_tokens"],
            cost_microusd=row["cost_microusd"] or 0,
            microseconds=(row["ended_at"] - row["started_at"]) // timedelta(microseconds=1) if row["ended_at"] else 0,
            **{row["status"]: 1},
        ),
        tools=dict(tools),
    )


async def compare_reports(client: MinimalClient, turns: Sequence[LoggedTurn], seed: int) -> int:
    """Compares reports by every single grouping and pair, whole and in part, and by tool. Returns their number."""
    count = 0
    for groups, params, selects in _queries(turns, Random(seed)):
        report = await client.get(f"/v1/usage?{urlencode([*(('group_by', name) for name in groups), *params])}")
        found = {_key(line, groups): _line_figures(line) for line in report["data"]}
        expected = _total([turn for turn in turns if selects(turn)], groups)
        require(
            holds=found == expected and not report["has_more"],
            otherwise=f"the report by {groups} with {params} differs from the log: {found} instead of {expected}",
        )
        count += 1
    return count


def _queries(
    turns: Sequence[LoggedTurn], random: Random
) -> Iterator[tuple[tuple[str, ...], list[tuple[str, str]], Callable[[LoggedTurn], bool]]]:
    first, last = turns[0].created_at, turns[-1].created_at + timedelta(seconds=1)
    groupings: list[tuple[str, ...]] = [
        *itertools.combinations(GROUPINGS, 1),
        *itertools.combinations(GROUPINGS, 2),
        (),
    ]
    groupings += [("tool",), *(("tool", name) for name in GROUPINGS if name != "hour")]
    for groups in groupings:
        yield groups, [("from", f"{first - timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}")], lambda _: True
        name, sample = random.choice(_FILTERS), random.choice(turns)
        if sample.values[name] is not None:
            yield groups, [(name, sample.values[name])], _has_value(name, sample.values[name])
        start = first + (last - first) * random.random() / 2
        end = start + (last - start) * random.random()
        yield groups, [("from", start.isoformat()), ("to", end.isoformat())], _is_between(start, end)


def _has_value(name: str, value: str) -> Callable[[LoggedTurn], bool]:
    return lambda turn: turn.values[name] == value


def _is_between(start: datetime, end: datetime) -> Callable[[LoggedTurn], bool]:
    return lambda turn: start <= turn.created_at < end


def _total(turns: Sequence[LoggedTurn], groups: Sequence[str]) -> dict[str, dict[str, float]]:
    lines: dict[str, Counter[str]] = defaultdict(Counter)
    for turn in turns:
        counted = turn.tools if "tool" in groups else {"": [0, 0]}
        for tool, (calls, failed) in counted.items():
            line = lines[_key({**turn.values, "tool": tool}, groups)]
            line.update(turn.figures)
            line.update(calls=calls, failed_calls=failed)
    return {key: _figures(line, line["microseconds"] / 1e6) for key, line in lines.items()}


def _key(values: dict[str, Any], groups: Sequence[str]) -> str:
    return orjson.dumps([values.get(name) for name in groups], option=orjson.OPT_SORT_KEYS).decode()


def _line_figures(line: dict[str, Any]) -> dict[str, float]:
    usage, calls = line["usage"], line.get("tool_calls") or {"calls": 0, "failed": 0}
    figures = Counter(
        turns=line["turns"],
        iterations=line["iterations"],
        input_tokens=usage["input_tokens"],
        output_tokens=usage["output_tokens"],
        cost_microusd=usage.get("cost_microusd") or 0,
        calls=calls["calls"],
        failed_calls=calls["failed"],
        **line["statuses"],
    )
    return _figures(figures, line["seconds"])


def _figures(counts: Counter[str], seconds: float) -> dict[str, float]:
    """Figures that are zero are omitted, and durations are rounded as in the response."""
    present = {name: count for name, count in counts.items() if count and name != "microseconds"}
    return {**present, "seconds": round(seconds, 3)}
