"""Continuations with some of the pending decisions, with the real CLI: the other calls are denied or failed."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.integration.harness.claude.desk import Desk, asking_desk
from tests.integration.harness.claude.test_custom_tools import NAME, results
from tests.integration.harness.twins import Crash

from footplate.domain import events as ev
from footplate.domain.permissions import Outcome as Gated
from footplate.domain.turns import TurnStatus
from footplate.harness.leftovers import UNANSWERED, UNKNOWN
from footplate.testing import replies, text, tool

pytestmark = pytest.mark.requirement("K9")

SCRIPTS = {
    "two": replies([tool(NAME, {"q": 1}), tool(NAME, {"q": 2})], [text("Thanks.")]),
    "mixed": replies(
        [
            tool(NAME, {"q": 1}),
            tool("Bash", {"command": "echo x >> ran"}),
            tool(NAME, {"q": 2}),
            tool("Bash", {"command": "echo y >> ran"}),
        ],
        [text("Thanks.")],
    ),
    "short": replies([text("Short.")]),
}


@pytest.fixture
async def runner(tmp_path: Path) -> AsyncIterator[Desk]:
    async with asking_desk(SCRIPTS, tmp_path) as runner:
        runner.gate.words = {"Bash": Gated.ASK}
        yield runner


def pending(runner: Desk) -> list[str]:
    asked = [event for event in runner.told() if ev.asks(event) or event.type == ev.AGENT_CUSTOM_TOOL_USE]
    return [event.id for event in asked]


def by_command(runner: Desk, command: str) -> str:
    (found,) = [event.id for event in runner.told() if ev.asks(event) and command in str(event.body["input"])]
    return found


def questions(runner: Desk) -> list[str]:
    asked = [event for event in runner.told() if event.type == ev.AGENT_CUSTOM_TOOL_USE]
    return [event.id for event in sorted(asked, key=lambda event: str(event.body["input"]))]


def ran(runner: Desk, host: str) -> list[str]:
    file = runner.folder / host / "work" / "ran"
    return file.read_text().split() if file.exists() else []


async def test_the_answered_question_reaches_the_model_and_the_other_does_not(runner: Desk) -> None:
    assert (await runner.turn("Ask. [[script:two]]")).status is TurnStatus.AWAITING
    runner.answer(questions(runner)[0], ev.text_block("Blue."))
    assert (await runner.turn("Never mind. [[script:short]]")).text == "Short."
    assert results(runner) == [(NAME, "Blue.", False), (NAME, UNANSWERED, True)]


async def test_what_was_allowed_is_made_before_the_new_message(runner: Desk) -> None:
    assert (await runner.turn("Ask. [[script:mixed]]")).status is TurnStatus.AWAITING
    assert len(pending(runner)) == 4
    runner.answer(questions(runner)[0], ev.text_block("Blue."))
    runner.confirm(by_command(runner, "echo x"), "allow")
    assert (await runner.turn("Never mind. [[script:short]]")).text == "Short."
    said = {(name, words): is_error for name, words, is_error in results(runner)}
    assert said[NAME, "Blue."] is False
    assert said[NAME, UNANSWERED] is True
    assert [is_error for (name, words), is_error in said.items() if "was not approved" in words and name == "Bash"] == [
        True
    ]
    assert len(said) == 4
    assert ran(runner, "host") == ["x"]
    assert len([event for event in runner.told() if event.type == ev.AGENT_TOOL_RESULT]) == 2


async def test_answers_and_words_of_one_message_go_on_with_the_same_turn(runner: Desk) -> None:
    await runner.turn("Ask. [[script:mixed]]")
    first, second = questions(runner)
    runner.answer(second, ev.text_block("Red."))
    runner.confirm(by_command(runner, "echo y"), "allow")
    runner.confirm(by_command(runner, "echo x"), "deny")
    runner.answer(first, ev.text_block("Blue."))
    assert (await runner.try_it()).text == "Thanks."
    assert [words for name, words, _ in results(runner) if name == NAME] == ["Blue.", "Red."]
    assert ran(runner, "host") == ["y"]


@pytest.mark.parametrize("lost", [1, 2, 3, 4])
async def test_a_worker_that_is_lost_before_the_message_is_heard_makes_no_call_twice(runner: Desk, lost: int) -> None:
    await runner.turn("Ask. [[script:mixed]]")
    runner.confirm(by_command(runner, "echo x"), "allow")
    runner.next_turn("Never mind. [[script:short]]")
    runner.log.crash_at, runner.log.crash_after_commit = runner.log.appends + lost, True
    with contextlib.suppress(Crash):
        await runner.try_it()
    runner.log.crash_at = None
    assert (await runner.try_it()).text == "Short."
    words = [words for name, words, _ in results(runner) if name == "Bash"]
    assert ran(runner, "host") == ["x"] or UNKNOWN in words
    assert len(ran(runner, "host")) <= 1
    assert len(results(runner)) == 4
