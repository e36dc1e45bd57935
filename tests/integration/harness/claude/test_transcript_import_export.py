"""Import of a foreign transcript into a session, and export of a session as a transcript."""

import contextlib
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from tests.integration.harness.claude.transcript_lines import call_line, make_line, response_line, result_line

from footplate.domain.errors import InvalidRequest
from footplate.domain.json import Json, JsonObject
from footplate.domain.ports.harness import Entry
from footplate.domain.ports.transcript_exchange import IMPORTED, ImportedLine, TranscriptLine
from footplate.domain.sessions import events as ev
from footplate.domain.sessions.events import Event
from footplate.harness.claude.transcripts import import_export, transcript_lines
from footplate.harness.claude.transcripts.import_export import ClaudeTranscripts
from footplate.harness.claude.transcripts.transcript_lines import Transcript, TranscriptKey
from footplate.harness.recovery_text import UNFINISHED, UNKNOWN


def user_line(uuid: str, text: str = "Hello", **more: Json) -> JsonObject:
    return {**make_line("user", uuid, [{"type": "text", "text": text}]), **more}


def import_lines(*lines: JsonObject, beside: Sequence[TranscriptLine] = ()) -> list[ImportedLine]:
    _, imported = ClaudeTranscripts().parse_import(lambda: [*map(TranscriptLine, lines), *beside])
    return [*imported]


def list_events(found: Sequence[ImportedLine]) -> list[Event]:
    return [event for piece in found for event in piece.events]


def list_entries(found: Sequence[ImportedLine]) -> list[Entry]:
    return [entry for piece in found for entry in piece.entries]


def list_uuids(found: Sequence[ImportedLine]) -> list[object]:
    return [
        transcript_lines.line_of(entry).get("uuid")
        for entry in list_entries(found)
        if entry.kind == transcript_lines.LINE
    ]


def test_the_history_becomes_events() -> None:
    found = import_lines(
        user_line("a", timestamp="2026-01-02T03:04:05.000Z"), response_line("b", "m", "Let me see."),
        call_line("c", "m", "t1", "ls"), result_line("d", "t1", "notes"), response_line("e", "n", "There are notes."),
    )  # fmt: skip
    recorded = list_events(found)
    assert [event.type for event in recorded] == [
        ev.USER_MESSAGE, ev.AGENT_MESSAGE, ev.AGENT_TOOL_USE, ev.AGENT_TOOL_RESULT, ev.AGENT_MESSAGE,
    ]  # fmt: skip
    assert recorded[0].body == {"content": [{"type": "text", "text": "Hello"}]}
    assert (recorded[2].body["name"], recorded[3].body["tool_use_id"]) == ("bash", recorded[2].id)
    assert found[1].happened_at == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert list_uuids(found) == ["a", "b", "c", "d", "e"]
    assert {entry.body["turn_id"] for entry in list_entries(found)} == {IMPORTED}


def test_session_id_and_version_are_read_from_the_transcript() -> None:
    origin, imported = ClaudeTranscripts().parse_import(
        lambda: [TranscriptLine(user_line("a", sessionId="their-own", version="2.1.300"))]
    )
    assert (origin.transcript_id, origin.version) == ("their-own", "2.1.300")
    found = Transcript(list_entries([*imported]))
    assert (found.session_id, found.version) == ("their-own", "2.1.300")


def test_the_clis_own_messages_are_not_user_messages() -> None:
    found = import_lines(
        user_line("a"), user_line("b", "Caveat", isMeta=True), user_line("c", "A summary.", isCompactSummary=True),
        user_line("d", "from a subagent", isSidechain=True),
        {"type": "system", "subtype": "compact_boundary", "uuid": "e", "parentUuid": None},
        response_line("f", "m", "Hi"),
    )  # fmt: skip
    types = [event.type for event in list_events(found)]
    assert types == [ev.USER_MESSAGE, "agent.thread_context_compacted", ev.AGENT_MESSAGE]
    assert list_uuids(found) == ["a", "b", "c", "d", "e", "f"]


def test_an_open_call_at_the_end_has_an_unknown_outcome() -> None:
    found = import_lines(user_line("a"), call_line("b", "m", "t1"), call_line("c", "m", "t2"), result_line("d", "t1"))
    closing = transcript_lines.line_of(list_entries(found)[-1])
    assert (closing["parentUuid"], UNKNOWN in str(closing["message"])) == ("c", True)
    last = list_events(found)[-1]
    assert (last.type, last.body["is_error"], last.body["call_id"]) == (ev.AGENT_TOOL_RESULT, True, "t2")
    assert Transcript(list_entries(found)).open_calls() == []


@pytest.mark.parametrize("then", [user_line("z", "Never mind."), response_line("z", "n", "Another branch.")])
def test_an_open_call_within_the_conversation_is_closed_in_place(then: JsonObject) -> None:
    """If its result were added at the end, the CLI would continue from that line."""
    found = import_lines(user_line("a"), call_line("b", "m", "t1"), then)
    names = list_uuids(found)
    assert (names[:2], names[3:]) == (["a", "b"], ["z"])
    assert Transcript(list_entries(found)).open_calls() == []


def test_lines_of_subagents_make_no_events_and_come_last() -> None:
    beside = [
        TranscriptLine(response_line("s", "k", "Working."), "subagents/agent-1"),
        TranscriptLine(call_line("t", "k", "t9"), "subagents/agent-1"),
    ]
    found = import_lines(user_line("a"), call_line("b", "m", "t1"), beside=beside)
    whole = Transcript(list_entries(found))
    assert whole.subpaths() == ["subagents/agent-1"]
    assert list_uuids(found)[-2:] == ["s", "t"]
    assert [event.type for event in list_events(found)].count(ev.AGENT_TOOL_RESULT) == 1


def test_lines_about_the_machine_are_omitted() -> None:
    state: list[JsonObject] = [
        {"type": "permission-mode", "permissionMode": "bypassPermissions"}, {"type": "worktree-state"},
    ]  # fmt: skip
    assert list_uuids(import_lines(*state, user_line("a"))) == ["a"]


def test_a_repeated_line_makes_one_event() -> None:
    found = import_lines(user_line("a"), user_line("a"), response_line("b", "m", "Hi"))
    assert [event.type for event in list_events(found)] == [ev.USER_MESSAGE, ev.AGENT_MESSAGE]


def test_a_time_in_the_future_becomes_now() -> None:
    (piece,) = [piece for piece in import_lines(user_line("a", timestamp="9999-01-01T00:00:00Z")) if piece.events]
    assert piece.happened_at is not None
    assert piece.happened_at <= datetime.now(UTC)
    assert [piece.happened_at for piece in import_lines(user_line("a", timestamp="soon"))] == [None, None]


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
def test_hostile_lines_are_refused_or_make_no_events(bad: JsonObject) -> None:
    """Either way, the stored lines never break a turn."""
    with contextlib.suppress(InvalidRequest):
        found = import_lines(user_line("a"), bad)
        assert len(list_events(found)) == 1
        assert Transcript(list_entries(found)).open_calls() == []
        assert len(export_lines(list_entries(found))) == 2


def test_a_file_that_is_no_transcript_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="contains no messages"):
        import_lines({"type": "summary", "summary": "Nothing"})
    for subpath in ("../../x", "subagents/../x", "/etc/passwd", "subagents/a\x00b", "tool-results/x"):
        with pytest.raises(InvalidRequest, match="not a valid subpath"):
            import_lines(user_line("a"), beside=[TranscriptLine(user_line("b"), subpath)])


def export_lines(entries: Sequence[Entry]) -> list[TranscriptLine]:
    export = ClaudeTranscripts().start_export("sesn_1")
    return [*(line for entry in entries for line in export.export_entry(entry)), *export.closing_lines()]


def test_an_export_has_the_sessions_id_and_no_open_calls() -> None:
    entries = [
        transcript_lines.session_entry("turn_1", "x", "2"),
        transcript_lines.line_entry("turn_1", TranscriptKey("p", "x"), user_line("a")),
        transcript_lines.line_entry("turn_1", TranscriptKey("p", "x"), {"type": "permission-mode"}),
        transcript_lines.line_entry("turn_1", TranscriptKey("p", "x"), call_line("b", "m", "t1")),
        transcript_lines.line_entry(
            "turn_1", TranscriptKey("p", "x", "subagents/agent-1"), response_line("s", "k", "Hm.")
        ),
        transcript_lines.line_entry("turn_1", TranscriptKey("p", "x", "../../evil"), response_line("e", "k", "Hm.")),
        transcript_lines.interrupted_mark("turn_1"),
    ]
    lines = export_lines(entries)
    assert [(line.subpath, line.body.get("uuid")) for line in lines[:3]] == [
        ("", "a"), ("", "b"), ("subagents/agent-1", "s"),
    ]  # fmt: skip
    assert {line.body["sessionId"] for line in lines} == {transcript_lines.derive_uuid("sesn_1")}
    assert UNFINISHED in str(lines[3].body["message"])


def test_an_imported_transcript_can_be_exported() -> None:
    lines = [user_line("a"), call_line("b", "m", "t1"), result_line("c", "t1"), response_line("d", "n", "Done.")]
    assert [line.body["uuid"] for line in export_lines(list_entries(import_lines(*lines)))] == ["a", "b", "c", "d"]


def test_open_calls_are_limited_and_stored_without_their_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_export, "MAX_OPEN_CALLS", 10)
    lines = [call_line(f"u{number}", f"m{number}", f"t{number}") for number in range(11)]
    assert len(list_events(import_lines(user_line("a"), *lines[:10]))) == 21
    with pytest.raises(InvalidRequest, match="no result"):
        import_lines(user_line("a"), *lines)
    monkeypatch.setattr(import_export, "MAX_OPEN_CALL_BYTES", 1000)
    with pytest.raises(InvalidRequest, match="no result"):
        import_lines(user_line("a"), *[call_line(f"u{number}", "m", f"t{number}", "x" * 300) for number in range(4)])
    seen = import_export._TranscriptSurvey()
    seen.add_line(1, TranscriptLine({**call_line("u", "m", "t"), "extra": "x" * 1000}))
    assert "extra" not in seen.open["t"][1]
