"""How a new attempt settles the events and entries of earlier attempts, case by case."""

import json
from dataclasses import replace

from tests.integration.harness.claude.desk import ASK, CONFIG
from tests.integration.harness.claude.lines import called, entries, line, prompt, result, said

from footplate.domain import events as ev
from footplate.domain.events import Event
from footplate.domain.json import Json, JsonObject
from footplate.domain.ports import Entry
from footplate.harness.claude import recovery, transcript
from footplate.harness.claude.custom_tools import CustomTools
from footplate.harness.claude.recovery import NOT_STARTED, Settlement
from footplate.harness.claude.transcript import Transcript
from footplate.harness.leftovers import LEFT_OPEN, STOPPED, UNANSWERED, UNKNOWN

CUSTOM = CustomTools(replace(CONFIG, custom_tools=(ASK,)))


def settle(history: list[Entry], *events: Event, turn: str = "turn_1") -> Settlement:
    return recovery.settle(turn, Transcript(history), events, timestamp="2026-01-01T00:00:00.000Z", custom=CUSTOM)


def results(found: Settlement) -> list[tuple[str, str]]:
    """Returns call id and text of each result that it adds."""
    told = []
    for kept in found.entries:
        body = transcript.line_of(kept)["message"]
        assert isinstance(body, dict)
        content = body["content"]
        assert isinstance(content, list)
        told += [(str(block["tool_use_id"]), str(block["content"])) for block in content if isinstance(block, dict)]
    return told


def test_a_new_turn_begins_with_its_prompt() -> None:
    assert settle([]) == Settlement(way="prompt")
    assert settle(entries("turn_0", prompt("turn_0"), said("a", "m", "Hi"))).way == "prompt"


def test_a_prompt_that_nobody_answered_is_sent_again() -> None:
    start = ev.model_request_start()
    found = settle(entries("turn_1", prompt("turn_1")), start)
    assert (found.way, [event.type for event in found.events]) == ("prompt", [ev.MODEL_REQUEST_END])


def test_a_prompt_that_was_answered_is_not_sent_again() -> None:
    history = entries("turn_1", prompt("turn_1"), called("a", "m", "t1"), result("b", "t1"))
    assert settle(history).way == "continue"


def test_a_call_that_was_let_through_has_an_unknown_outcome() -> None:
    use = ev.tool_use("bash", {"command": "ls"}, call_id="t1")
    found = settle(entries("turn_1", prompt("turn_1"), said("a", "m", "Look"), called("b", "m", "t1")), use)
    assert (found.way, found.responses, results(found)) == ("continue", 1, [("t1", UNKNOWN)])
    (event,) = found.events
    assert (event.type, event.body["tool_use_id"], event.body["is_error"]) == (ev.AGENT_TOOL_RESULT, use.id, True)
    added = transcript.line_of(found.entries[0])
    assert (added["parentUuid"], added["sourceToolAssistantUUID"]) == ("b", "b")


def test_a_call_that_was_not_let_through_had_no_effect() -> None:
    use = ev.tool_use("bash", {"command": "ls"}, call_id="t1")
    done = ev.tool_result(use.id, [], is_error=False, call_id="t1")
    history = entries("turn_1", prompt("turn_1"), called("a", "m", "t1"), called("b", "m", "t2"), result("c", "t1"))
    found = settle(history, use, done)
    assert (results(found), found.events) == ([("t2", NOT_STARTED)], ())


def test_what_an_earlier_turn_left_open_is_closed_before_the_prompt() -> None:
    found = settle(entries("turn_0", prompt("turn_0"), called("a", "m", "t1")))
    assert (found.way, results(found)) == ("prompt", [("t1", LEFT_OPEN)])


QUESTION = "mcp__custom__ask"
ASKED = ev.custom_tool_use("ask", {"command": "ls"}, call_id="t1")


def answer(asked: Event, *content: Json, is_error: bool = False) -> Event:
    body: JsonObject = {"custom_tool_use_id": asked.id, "content": [*content], "is_error": is_error}
    return Event(ev.USER_CUSTOM_TOOL_RESULT, body)


def test_a_question_waits_for_its_answer() -> None:
    history = entries("turn_1", prompt("turn_1"), called("a", "m", "t1", name=QUESTION))
    assert settle(history, ASKED) == Settlement(way="waiting", responses=1, pending=(ASKED.id,))


def test_a_command_beside_a_question_is_settled_while_that_waits() -> None:
    use = ev.tool_use("bash", {"command": "ls"}, call_id="t2")
    history = entries("turn_1", prompt("turn_1"), called("a", "m", "t1", name=QUESTION), called("b", "m", "t2"))
    found = settle(history, ASKED, use)
    assert (found.way, found.pending, results(found)) == ("waiting", (ASKED.id,), [("t2", UNKNOWN)])
    assert [event.type for event in found.events] == [ev.AGENT_TOOL_RESULT]


def test_an_answer_is_the_result_of_its_question() -> None:
    history = entries("turn_1", prompt("turn_1"), called("a", "m", "t1", name=QUESTION))
    given = ev.text_block("Blue.")
    found = settle(history, ASKED, answer(ASKED, given, is_error=True))
    assert (found.way, found.pending, results(found), found.events) == ("continue", (), [("t1", str([given]))], ())
    message = transcript.line_of(found.entries[0])["message"]
    assert "'is_error': True" in str(message)
    again = settle([*history, *found.entries], ASKED, answer(ASKED, given))
    assert again == Settlement(way="continue", responses=1)


def test_one_of_two_questions_was_answered() -> None:
    other = ev.custom_tool_use("ask", {"command": "ls"}, call_id="t2")
    calls = [called(uuid, "m", call_id, name=QUESTION) for uuid, call_id in (("a", "t1"), ("b", "t2"))]
    found = settle(entries("turn_1", prompt("turn_1"), *calls), ASKED, other, answer(other))
    assert (found.way, found.pending, [call for call, _ in results(found)]) == ("waiting", (ASKED.id,), ["t2"])


def test_a_question_that_was_not_asked_had_no_effect() -> None:
    found = settle(entries("turn_1", prompt("turn_1"), called("a", "m", "t1", name=QUESTION)))
    assert (found.way, results(found)) == ("continue", [("t1", NOT_STARTED)])


def test_a_question_of_an_earlier_turn_was_not_answered() -> None:
    history = entries("turn_0", prompt("turn_0"), called("a", "m", "t1", name=QUESTION))
    assert results(settle(history)) == [("t1", UNANSWERED)]
    assert results(settle([*history, transcript.mark_interrupted("turn_0")])) == [("t1", STOPPED)]


def test_a_turn_whose_answer_is_all_there_is_over() -> None:
    history = entries("turn_1", prompt("turn_1"), said("a", "m", "One "), said("b", "m", "two"))
    assert settle(history) == Settlement(way="answered", text="One two", responses=1)


def test_an_answer_that_somebody_spoke_after_is_not_the_last() -> None:
    history = entries(
        "turn_1", prompt("turn_1"), said("a", "m", "One"), line("user", "x", [{"type": "text", "text": "?"}])
    )
    assert settle(history).way == "continue"


def test_a_turn_that_a_person_stopped_stays_stopped() -> None:
    history = [*entries("turn_1", prompt("turn_1"), said("a", "m", "On")), transcript.mark_interrupted("turn_1")]
    assert settle(history).way == "interrupted"


def test_the_file_for_the_cli_names_the_session_and_begins_with_the_type() -> None:
    history = [Entry("request", {"message": {}}), *entries("turn_1", prompt("turn_1"), {"uuid": "q", "type": "mode"})]
    lines = [json.loads(item) for item in Transcript(history).file("new").splitlines()]
    assert [(item["type"], item["sessionId"]) for item in lines] == [("user", "new"), ("mode", "new")]
    assert Transcript(history).file("new").startswith(b'{"type":"user"')
