"""Import of a foreign transcript into a session, and export of a session as a transcript."""

import contextlib
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from tests.integration.harness.claude.lines import called, line, result, said

from footplate.domain import events as ev
from footplate.domain.errors import InvalidRequest
from footplate.domain.events import Event
from footplate.domain.json import Json, JsonObject
from footplate.domain.ports import Entry
from footplate.domain.transcripts import IMPORTED, Line, Piece
from footplate.harness.claude import imports, transcript
from footplate.harness.claude.imports import ClaudeTranscripts
from footplate.harness.claude.transcript import Place, Transcript
from footplate.harness.leftovers import LEFT_OPEN, UNKNOWN


def asked(uuid: str, text: str = "Hello", **more: Json) -> JsonObject:
    return {**line("user", uuid, [{"type": "text", "text": text}]), **more}


def pieces(*lines: JsonObject, beside: Sequence[Line] = ()) -> list[Piece]:
    _, made = ClaudeTranscripts().arriving(lambda: [*map(Line, lines), *beside])
    return [*made]


def events(found: Sequence[Piece]) -> list[Event]:
    return [event for piece in found for event in piece.events]


def kept(found: Sequence[Piece]) -> list[Entry]:
    return [entry for piece in found for entry in piece.entries]


def uuids(found: Sequence[Piece]) -> list[object]:
    return [transcript.line_of(entry).get("uuid") for entry in kept(found) if entry.kind == transcript.LINE]


def test_the_history_is_told_in_events() -> None:
    found = pieces(
        asked("a", timestamp="2026-01-02T03:04:05.000Z"), said("b", "m", "Let me see."), called("c", "m", "t1", "ls"),
        result("d", "t1", "notes"), said("e", "n", "There are notes."),
    )  # fmt: skip
    told = events(found)
    assert [event.type for event in told] == [
        ev.USER_MESSAGE, ev.AGENT_MESSAGE, ev.AGENT_TOOL_USE, ev.AGENT_TOOL_RESULT, ev.AGENT_MESSAGE,
    ]  # fmt: skip
    assert told[0].body == {"content": [{"type": "text", "text": "Hello"}]}
    assert (told[2].body["name"], told[3].body["tool_use_id"]) == ("bash", told[2].id)
    assert found[1].moment == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert uuids(found) == ["a", "b", "c", "d", "e"]
    assert {entry.body["turn_id"] for entry in kept(found)} == {IMPORTED}


def test_what_it_says_of_itself() -> None:
    origin, made = ClaudeTranscripts().arriving(lambda: [Line(asked("a", sessionId="their-own", version="2.1.300"))])
    assert (origin.transcript_id, origin.version) == ("their-own", "2.1.300")
    found = Transcript(kept([*made]))
    assert (found.session_id, found.version) == ("their-own", "2.1.300")


def test_words_of_the_cli_are_nobodys() -> None:
    found = pieces(
        asked("a"), asked("b", "Caveat", isMeta=True), asked("c", "A summary.", isCompactSummary=True),
        asked("d", "from a subagent", isSidechain=True),
        {"type": "system", "subtype": "compact_boundary", "uuid": "e", "parentUuid": None},
        said("f", "m", "Hi"),
    )  # fmt: skip
    types = [event.type for event in events(found)]
    assert types == [ev.USER_MESSAGE, "agent.thread_context_compacted", ev.AGENT_MESSAGE]
    assert uuids(found) == ["a", "b", "c", "d", "e", "f"]


def test_a_call_at_the_end_has_an_unknown_outcome() -> None:
    found = pieces(asked("a"), called("b", "m", "t1"), called("c", "m", "t2"), result("d", "t1"))
    closing = transcript.line_of(kept(found)[-1])
    assert (closing["parentUuid"], UNKNOWN in str(closing["message"])) == ("c", True)
    last = events(found)[-1]
    assert (last.type, last.body["is_error"], last.body["call_id"]) == (ev.AGENT_TOOL_RESULT, True, "t2")
    assert Transcript(kept(found)).open_calls() == []


@pytest.mark.parametrize("then", [asked("z", "Never mind."), said("z", "n", "Another branch.")])
def test_a_call_that_the_conversation_went_past_is_closed_where_it_is(then: JsonObject) -> None:
    """If its result were added at the end, the CLI would continue from that line."""
    found = pieces(asked("a"), called("b", "m", "t1"), then)
    names = uuids(found)
    assert (names[:2], names[3:]) == (["a", "b"], ["z"])
    assert Transcript(kept(found)).open_calls() == []


def test_subagents_tell_nothing_and_come_last() -> None:
    beside = [Line(said("s", "k", "Working."), "subagents/agent-1"), Line(called("t", "k", "t9"), "subagents/agent-1")]
    found = pieces(asked("a"), called("b", "m", "t1"), beside=beside)
    whole = Transcript(kept(found))
    assert whole.subpaths() == ["subagents/agent-1"]
    assert uuids(found)[-2:] == ["s", "t"]
    assert [event.type for event in events(found)].count(ev.AGENT_TOOL_RESULT) == 1


def test_what_tells_of_a_machine_is_left_out() -> None:
    state: list[JsonObject] = [
        {"type": "permission-mode", "permissionMode": "bypassPermissions"}, {"type": "worktree-state"},
    ]  # fmt: skip
    assert uuids(pieces(*state, asked("a"))) == ["a"]


def test_a_line_that_is_there_twice_is_told_once() -> None:
    found = pieces(asked("a"), asked("a"), said("b", "m", "Hi"))
    assert [event.type for event in events(found)] == [ev.USER_MESSAGE, ev.AGENT_MESSAGE]


def test_a_time_to_come_is_now() -> None:
    (piece,) = [piece for piece in pieces(asked("a", timestamp="9999-01-01T00:00:00Z")) if piece.events]
    assert piece.moment is not None
    assert piece.moment <= datetime.now(UTC)
    assert [piece.moment for piece in pieces(asked("a", timestamp="soon"))] == [None, None]


HOSTILE: list[JsonObject] = [
    {"uuid": "x"},
    {"type": 7},
    {"type": "assistant", "message": []},
    {"type": "assistant", "message": {"content": 7, "model": "m"}},
    {"type": "assistant", "message": {"content": [7], "model": "m"}},
    {"type": "user", "message": {"content": [7]}},
    {"type": "user", "message": {"content": [{"type": "tool_result"}]}},
    {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": 7, "content": 7}]}},
    {"type": "attachment", "attachment": {"type": "queued_command", "prompt": {"x": 7}}},
]


@pytest.mark.parametrize("bad", HOSTILE)
def test_lines_that_nobody_survives_are_refused_or_say_nothing(bad: JsonObject) -> None:
    """Either way, the stored lines never break a turn."""
    with contextlib.suppress(InvalidRequest):
        found = pieces(asked("a"), bad)
        assert len(events(found)) == 1
        assert Transcript(kept(found)).open_calls() == []
        assert len(leave(kept(found))) == 2


def test_what_is_no_transcript_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="contains no messages"):
        pieces({"type": "summary", "summary": "Nothing"})
    for subpath in ("../../x", "subagents/../x", "/etc/passwd", "subagents/a\x00b", "tool-results/x"):
        with pytest.raises(InvalidRequest, match="not a valid subpath"):
            pieces(asked("a"), beside=[Line(asked("b"), subpath)])


def leave(entries: Sequence[Entry]) -> list[Line]:
    leaving = ClaudeTranscripts().leaving("sesn_1")
    return [*(line for entry in entries for line in leaving.lines(entry)), *leaving.last()]


def test_a_session_leaves_under_its_own_name_with_nothing_open() -> None:
    entries = [
        transcript.session_entry("turn_1", "x", "2"),
        transcript.entry("turn_1", Place("p", "x"), asked("a")),
        transcript.entry("turn_1", Place("p", "x"), {"type": "permission-mode"}),
        transcript.entry("turn_1", Place("p", "x"), called("b", "m", "t1")),
        transcript.entry("turn_1", Place("p", "x", "subagents/agent-1"), said("s", "k", "Hm.")),
        transcript.entry("turn_1", Place("p", "x", "../../evil"), said("e", "k", "Hm.")),
        transcript.mark_interrupted("turn_1"),
    ]
    lines = leave(entries)
    assert [(line.subpath, line.body.get("uuid")) for line in lines[:3]] == [
        ("", "a"), ("", "b"), ("subagents/agent-1", "s"),
    ]  # fmt: skip
    assert {line.body["sessionId"] for line in lines} == {transcript.own_uuid("sesn_1")}
    assert LEFT_OPEN in str(lines[3].body["message"])


def test_what_came_can_leave_again() -> None:
    lines = [asked("a"), called("b", "m", "t1"), result("c", "t1"), said("d", "n", "Done.")]
    assert [line.body["uuid"] for line in leave(kept(pieces(*lines)))] == ["a", "b", "c", "d"]


def test_calls_without_a_result_are_few_and_held_without_their_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imports, "MOST_OPEN", 10)
    lines = [called(f"u{number}", f"m{number}", f"t{number}") for number in range(11)]
    assert len(events(pieces(asked("a"), *lines[:10]))) == 21
    with pytest.raises(InvalidRequest, match="no result"):
        pieces(asked("a"), *lines)
    monkeypatch.setattr(imports, "MOST_OPEN_BYTES", 1000)
    with pytest.raises(InvalidRequest, match="no result"):
        pieces(asked("a"), *[called(f"u{number}", "m", f"t{number}", "x" * 300) for number in range(4)])
    seen = imports._Survey()
    seen.take(1, Line({**called("u", "m", "t"), "extra": "x" * 1000}))
    assert "extra" not in seen.open["t"][1]
