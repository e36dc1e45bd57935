"""The checks of the crash proofs find lost, repeated and reordered events, calls and lines."""

from collections import Counter
from typing import Any

import orjson
import pytest
from bench.support.crash import interrupted_turn, session_check
from bench.support.crash.session_check import Call

from footplate.domain.sessions import events
from footplate.testing.reply_steps import Tool


def _log(*types: str) -> list[dict[str, Any]]:
    return [{"seq": n, "event_id": f"e{n}", "ref_seq": None, "type": kind} for n, kind in enumerate(types, start=1)]


def _call(name: str, *, results: int = 1, unknown: bool = False) -> Call:
    return Call(f"use-{name}", name, results, unknown=unknown, failed=unknown)


def test_a_complete_log_that_was_streamed_once_has_no_fault() -> None:
    assert not session_check._log_faults({"seq": 3}, _log("a", "b", "c"), [1, 2, 3])


@pytest.mark.parametrize("seen", [[1, 2], [1, 2, 2, 3], [2, 1, 3], [1, 3]])
def test_a_stream_that_loses_repeats_or_changes_the_order_is_found(seen: list[int]) -> None:
    assert session_check._log_faults({"seq": 3}, _log("a", "b", "c"), seen)


def test_a_gap_and_a_duplicate_event_are_found() -> None:
    log = _log("a", "b", "c")
    assert session_check._log_faults({"seq": 4}, log, [1, 2, 3, 4])
    log[2]["event_id"] = "e1"
    assert session_check._log_faults({"seq": 3}, log, [1, 2, 3])


def test_a_call_that_ran_twice_is_found_regardless_of_its_result() -> None:
    for unknown in (True, False):
        assert session_check._line_faults([_call("0", unknown=unknown)], Counter({"0": 2}))


def test_only_an_unknown_call_may_have_no_line() -> None:
    assert not session_check._line_faults([_call("0", unknown=True)], Counter())
    assert session_check._line_faults([_call("0")], Counter())


def test_a_line_without_a_call_is_found() -> None:
    assert session_check._line_faults([_call("0")], Counter({"0": 1, "1": 1}))


def test_each_call_has_one_result_and_none_is_missing() -> None:
    assert not session_check._call_faults([_call("0"), _call("1", unknown=True)], 2)
    assert session_check._call_faults([_call("0"), _call("1", results=0)], 2)
    assert session_check._call_faults([_call("0"), _call("1", results=2)], 2)
    assert session_check._call_faults([_call("0")], 2)
    assert session_check._call_faults([_call("0"), _call("0")], 2)


def test_a_turn_that_did_not_complete_is_found() -> None:
    idle = {"status": "idle", "holder": None}
    assert not session_check._turn_faults(idle, [{"status": "completed"}], 1)
    assert session_check._turn_faults(idle, [{"status": "failed"}], 1)
    assert session_check._turn_faults(idle, [{"status": "completed"}] * 2, 1)
    assert session_check._turn_faults({"status": "running", "holder": "w"}, [{"status": "completed"}], 1)


def test_calls_are_paired_with_their_results() -> None:
    log = _log(events.AGENT_TOOL_USE, events.AGENT_TOOL_RESULT, events.AGENT_TOOL_RESULT)
    log[0]["body"] = orjson.dumps({"input": {"command": "echo 3.a >> lines; sleep 1"}})
    unknown = [{"type": "text", "text": "The outcome of this call is unknown: …"}]
    log[1]["body"] = orjson.dumps({"tool_use_id": "e1", "content": unknown, "is_error": True})
    log[2]["body"] = orjson.dumps({"tool_use_id": "nobody", "content": [], "is_error": False})
    assert session_check._read_calls(log) == [
        Call("e1", "3.a", 1, unknown=True, failed=True),
        Call("nobody", "?", -1, unknown=False, failed=True),
    ]


def test_the_turn_has_twelve_calls_with_a_name_each() -> None:
    names: list[str] = []
    n = 0
    for item in interrupted_turn.build_script().replies:
        for _ in range(int(item.repeat)):
            calls = [step for step in item.steps if isinstance(step, Tool)]
            names += [
                interrupted_turn.written_line(str(call.input["command"])).replace("{n}", str(n)) for call in calls
            ]
            n += 1
    assert len(names) == len(set(names)) == interrupted_turn.CALLS
