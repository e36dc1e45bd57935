"""How a new attempt settles the events and entries of earlier attempts, case by case."""

import json
from dataclasses import replace

from tests.integration.harness.claude.session_runner import ASK_TOOL, CONFIG
from tests.integration.harness.claude.transcript_lines import (
    call_line,
    make_entries,
    make_line,
    prompt_line,
    response_line,
    result_line,
)

from footplate.domain.json import Json, JsonObject
from footplate.domain.ports.harness import Entry
from footplate.domain.sessions import events as ev
from footplate.domain.sessions.events import Event
from footplate.harness.claude import recovery
from footplate.harness.claude.permissions.custom_tool_names import CustomTools
from footplate.harness.claude.recovery import NOT_STARTED, RecoveryPlan
from footplate.harness.claude.transcripts import transcript_lines
from footplate.harness.claude.transcripts.transcript_lines import Transcript
from footplate.harness.recovery_text import CLIENT_RESULT_INTERRUPTED, NO_CLIENT_RESULT, UNFINISHED, UNKNOWN

CUSTOM = CustomTools(replace(CONFIG, custom_tools=(ASK_TOOL,)))


def settle(history: list[Entry], *events: Event, turn: str = "turn_1") -> RecoveryPlan:
    return recovery.plan_recovery(
        turn, Transcript(history), events, timestamp="2026-01-01T00:00:00.000Z", custom=CUSTOM
    )


def list_results(found: RecoveryPlan) -> list[tuple[str, str]]:
    """Returns call id and text of each result that it adds."""
    pairs: list[tuple[str, str]] = []
    for entry in found.entries:
        body = transcript_lines.line_of(entry)["message"]
        assert isinstance(body, dict)
        content = body["content"]
        assert isinstance(content, list)
        pairs += [(str(block["tool_use_id"]), str(block["content"])) for block in content if isinstance(block, dict)]
    return pairs


def test_a_new_turn_begins_with_its_prompt() -> None:
    assert settle([]) == RecoveryPlan(next_step="prompt")
    assert settle(make_entries("turn_0", prompt_line("turn_0"), response_line("a", "m", "Hi"))).next_step == "prompt"


def test_a_prompt_without_a_response_is_sent_again() -> None:
    start = ev.model_request_start()
    found = settle(make_entries("turn_1", prompt_line("turn_1")), start)
    assert (found.next_step, [event.type for event in found.events]) == ("prompt", [ev.MODEL_REQUEST_END])


def test_a_prompt_with_a_response_is_not_sent_again() -> None:
    history = make_entries("turn_1", prompt_line("turn_1"), call_line("a", "m", "t1"), result_line("b", "t1"))
    assert settle(history).next_step == "continue"


def test_a_started_call_has_an_unknown_outcome() -> None:
    use = ev.tool_use("bash", {"command": "ls"}, call_id="t1")
    found = settle(
        make_entries("turn_1", prompt_line("turn_1"), response_line("a", "m", "Look"), call_line("b", "m", "t1")), use
    )
    assert (found.next_step, found.responses, list_results(found)) == ("continue", 1, [("t1", UNKNOWN)])
    (event,) = found.events
    assert (event.type, event.body["tool_use_id"], event.body["is_error"]) == (ev.AGENT_TOOL_RESULT, use.id, True)
    added = transcript_lines.line_of(found.entries[0])
    assert (added["parentUuid"], added["sourceToolAssistantUUID"]) == ("b", "b")


def test_a_call_that_was_not_started_had_no_effect() -> None:
    use = ev.tool_use("bash", {"command": "ls"}, call_id="t1")
    done = ev.tool_result(use.id, [], is_error=False, call_id="t1")
    history = make_entries(
        "turn_1", prompt_line("turn_1"), call_line("a", "m", "t1"), call_line("b", "m", "t2"), result_line("c", "t1")
    )
    found = settle(history, use, done)
    assert (list_results(found), found.events) == ([("t2", NOT_STARTED)], ())


def test_open_calls_of_an_earlier_turn_are_closed_before_the_prompt() -> None:
    found = settle(make_entries("turn_0", prompt_line("turn_0"), call_line("a", "m", "t1")))
    assert (found.next_step, list_results(found)) == ("prompt", [("t1", UNFINISHED)])


CUSTOM_TOOL_NAME = "mcp__custom__ask"
CUSTOM_CALL = ev.custom_tool_use("ask", {"command": "ls"}, call_id="t1")


def tool_result_event(asked: Event, *content: Json, is_error: bool = False) -> Event:
    body: JsonObject = {"custom_tool_use_id": asked.id, "content": [*content], "is_error": is_error}
    return Event(ev.USER_CUSTOM_TOOL_RESULT, body)


def test_a_custom_call_waits_for_its_result() -> None:
    history = make_entries("turn_1", prompt_line("turn_1"), call_line("a", "m", "t1", name=CUSTOM_TOOL_NAME))
    assert settle(history, CUSTOM_CALL) == RecoveryPlan(next_step="waiting", responses=1, pending=(CUSTOM_CALL.id,))


def test_a_command_is_settled_while_a_custom_call_waits() -> None:
    use = ev.tool_use("bash", {"command": "ls"}, call_id="t2")
    history = make_entries(
        "turn_1", prompt_line("turn_1"), call_line("a", "m", "t1", name=CUSTOM_TOOL_NAME), call_line("b", "m", "t2")
    )
    found = settle(history, CUSTOM_CALL, use)
    assert (found.next_step, found.pending, list_results(found)) == ("waiting", (CUSTOM_CALL.id,), [("t2", UNKNOWN)])
    assert [event.type for event in found.events] == [ev.AGENT_TOOL_RESULT]


def test_the_clients_result_is_the_result_of_the_custom_call() -> None:
    history = make_entries("turn_1", prompt_line("turn_1"), call_line("a", "m", "t1", name=CUSTOM_TOOL_NAME))
    given = ev.text_block("Blue.")
    found = settle(history, CUSTOM_CALL, tool_result_event(CUSTOM_CALL, given, is_error=True))
    assert (found.next_step, found.pending, list_results(found), found.events) == (
        "continue",
        (),
        [("t1", str([given]))],
        (),
    )
    message = transcript_lines.line_of(found.entries[0])["message"]
    assert "'is_error': True" in str(message)
    again = settle([*history, *found.entries], CUSTOM_CALL, tool_result_event(CUSTOM_CALL, given))
    assert again == RecoveryPlan(next_step="continue", responses=1)


def test_one_of_two_custom_calls_has_a_result() -> None:
    other = ev.custom_tool_use("ask", {"command": "ls"}, call_id="t2")
    calls = [call_line(uuid, "m", call_id, name=CUSTOM_TOOL_NAME) for uuid, call_id in (("a", "t1"), ("b", "t2"))]
    found = settle(make_entries("turn_1", prompt_line("turn_1"), *calls), CUSTOM_CALL, other, tool_result_event(other))
    assert (found.next_step, found.pending, [call for call, _ in list_results(found)]) == (
        "waiting",
        (CUSTOM_CALL.id,),
        ["t2"],
    )


def test_a_custom_call_that_was_not_sent_had_no_effect() -> None:
    found = settle(make_entries("turn_1", prompt_line("turn_1"), call_line("a", "m", "t1", name=CUSTOM_TOOL_NAME)))
    assert (found.next_step, list_results(found)) == ("continue", [("t1", NOT_STARTED)])


def test_a_custom_call_of_an_earlier_turn_has_no_result() -> None:
    history = make_entries("turn_0", prompt_line("turn_0"), call_line("a", "m", "t1", name=CUSTOM_TOOL_NAME))
    assert list_results(settle(history)) == [("t1", NO_CLIENT_RESULT)]
    assert list_results(settle([*history, transcript_lines.interrupted_mark("turn_0")])) == [
        ("t1", CLIENT_RESULT_INTERRUPTED)
    ]


def test_a_turn_with_a_complete_response_is_over() -> None:
    history = make_entries(
        "turn_1", prompt_line("turn_1"), response_line("a", "m", "One "), response_line("b", "m", "two")
    )
    assert settle(history) == RecoveryPlan(next_step="answered", text="One two", responses=1)


def test_a_response_before_a_user_message_is_not_the_last() -> None:
    history = make_entries(
        "turn_1",
        prompt_line("turn_1"),
        response_line("a", "m", "One"),
        make_line("user", "x", [{"type": "text", "text": "?"}]),
    )
    assert settle(history).next_step == "continue"


def test_an_interrupted_turn_stays_interrupted() -> None:
    history = [
        *make_entries("turn_1", prompt_line("turn_1"), response_line("a", "m", "On")),
        transcript_lines.interrupted_mark("turn_1"),
    ]
    assert settle(history).next_step == "interrupted"


def test_the_file_for_the_cli_names_the_session_and_begins_with_the_type() -> None:
    history = [
        Entry("request", {"message": {}}),
        *make_entries("turn_1", prompt_line("turn_1"), {"uuid": "q", "type": "mode"}),
    ]
    lines = [json.loads(item) for item in Transcript(history).file("new").splitlines()]
    assert [(item["type"], item["sessionId"]) for item in lines] == [("user", "new"), ("mode", "new")]
    assert Transcript(history).file("new").startswith(b'{"type":"user"')
