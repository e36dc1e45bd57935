"""Questions of Claude Code with the real CLI: the turn parks, and the reply is the result that the CLI would write."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.integration.harness.claude.session_runner import TOOLS, SessionRunner
from tests.integration.harness.claude.test_custom_tools import list_results, list_tool_calls
from tests.integration.harness.claude.test_subagents import SCOUT, call_subagent

from footplate.domain.json import JsonObject
from footplate.domain.sessions import events as ev
from footplate.domain.sessions import questions
from footplate.domain.sessions.events import Event
from footplate.domain.sessions.turns import Mode, TurnStatus
from footplate.harness.claude.transcripts import transcript_lines
from footplate.harness.recovery_text import NO_CLIENT_RESULT
from footplate.testing import ScriptedModel, replies, text, tool

pytestmark = pytest.mark.timing

TOOL = "AskUserQuestion"
ITEM: JsonObject = {
    "question": "Which colour?",
    "header": "Colour",
    "options": [{"label": "Red", "description": "Warm."}, {"label": "Blue (Recommended)", "description": "Cold."}],
    "multiSelect": False,
}
ASKED: JsonObject = {"questions": [{name: value for name, value in ITEM.items() if name != "multiSelect"}]}
CALL = tool(TOOL, {"questions": [ITEM]})
SCRIPTS = {
    "ask": replies([text("Let me ask."), CALL], [text("Thanks.")]),
    "mixed": replies([CALL, tool("Bash", {"command": "echo x >> ran"})], [text("Thanks.")]),
    "short": replies([text("Short.")]),
    "delegate": replies([call_subagent("ask", "scout")], [text("It asked.")]),
}


@pytest.fixture
async def runner(tmp_path: Path) -> AsyncIterator[SessionRunner]:
    async with ScriptedModel(SCRIPTS) as model:
        runner = SessionRunner(model, tmp_path, tools=(*TOOLS, questions.ASK_USER))
        yield runner
        await runner.close()


def send_reply(runner: SessionRunner, event_id: str, reply: str) -> str:
    fields = questions.result_fields(event_id, ASKED, {"Which colour?": reply})
    runner.log.events.append(Event(ev.USER_CUSTOM_TOOL_RESULT, fields))
    return str(fields["content"][0]["text"])  # pyrefly: ignore[bad-index, unsupported-operation]


async def test_a_question_parks_the_turn_until_a_person_replies(runner: SessionRunner) -> None:
    outcome = await runner.run_turn("Ask. [[script:mixed]]", "one")
    (asked,) = list_tool_calls(runner)
    assert (outcome.status, outcome.pending) == (TurnStatus.AWAITING, (asked,))
    (event,) = [event for event in runner.turn_events() if event.id == asked]
    assert (event.body["name"], event.body["question"], event.body["input"]) == ("ask_user", True, ASKED)
    assert runner.environment is None, "no process waits for the reply"
    expected = send_reply(runner, asked, "Red")
    outcome = await runner.run_attempt("two")
    assert (outcome.status, outcome.text) == (TurnStatus.COMPLETED, "Thanks.")
    assert (TOOL, expected, False) in list_results(runner)
    lines = [transcript_lines.line_of(entry) for entry in runner.log.entries if entry.kind == transcript_lines.LINE]
    (details,) = [line["toolUseResult"] for line in lines if expected in str(line)]
    assert details == {"questions": [ITEM], "answers": {"Which colour?": "Red"}}


async def test_a_new_message_closes_the_question(runner: SessionRunner) -> None:
    await runner.run_turn("Ask. [[script:ask]]", "one")
    await runner.run_turn("Never mind. [[script:short]]", "two")
    assert list_results(runner) == [(TOOL, NO_CLIENT_RESULT, True)]


async def test_no_one_is_asked_in_the_background_or_by_a_subagent(runner: SessionRunner) -> None:
    runner.mode = Mode.BACKGROUND
    assert (await runner.run_turn("Ask. [[script:ask]]")).text == "Thanks."
    ((_, result, is_error),) = list_results(runner)
    assert result.endswith(questions.background_text(ASKED))
    assert is_error
    assert list_tool_calls(runner) == []
    runner.mode, runner.subagents = Mode.INTERACTIVE, (SCOUT,)
    assert (await runner.run_turn("Ask. [[script:delegate]]")).text == "It asked."
    assert list_tool_calls(runner) == []
