"""The same as `test_deferred` of native, with the real CLI: what a continuation does not cover is denied, or failed."""

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
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with asking_desk(SCRIPTS, tmp_path) as desk:
        desk.gate.words = {"Bash": Gated.ASK}
        yield desk


def pending(desk: Desk) -> list[str]:
    asked = [event for event in desk.told() if ev.asks(event) or event.type == ev.AGENT_CUSTOM_TOOL_USE]
    return [event.id for event in asked]


def by_command(desk: Desk, command: str) -> str:
    (found,) = [event.id for event in desk.told() if ev.asks(event) and command in str(event.body["input"])]
    return found


def questions(desk: Desk) -> list[str]:
    asked = [event for event in desk.told() if event.type == ev.AGENT_CUSTOM_TOOL_USE]
    return [event.id for event in sorted(asked, key=lambda event: str(event.body["input"]))]


def ran(desk: Desk, host: str) -> list[str]:
    file = desk.folder / host / "work" / "ran"
    return file.read_text().split() if file.exists() else []


async def test_the_answered_question_reaches_the_model_and_the_other_does_not(desk: Desk) -> None:
    assert (await desk.turn("Ask. [[script:two]]")).status is TurnStatus.AWAITING
    desk.answer(questions(desk)[0], ev.text_block("Blue."))
    assert (await desk.turn("Never mind. [[script:short]]")).text == "Short."
    assert results(desk) == [(NAME, "Blue.", False), (NAME, UNANSWERED, True)]


async def test_what_was_allowed_is_made_before_the_new_message(desk: Desk) -> None:
    assert (await desk.turn("Ask. [[script:mixed]]")).status is TurnStatus.AWAITING
    assert len(pending(desk)) == 4
    desk.answer(questions(desk)[0], ev.text_block("Blue."))
    desk.confirm(by_command(desk, "echo x"), "allow")
    assert (await desk.turn("Never mind. [[script:short]]")).text == "Short."
    said = {(name, words): is_error for name, words, is_error in results(desk)}
    assert said[NAME, "Blue."] is False
    assert said[NAME, UNANSWERED] is True
    assert [is_error for (name, words), is_error in said.items() if "was not approved" in words and name == "Bash"] == [
        True
    ]
    assert len(said) == 4
    assert ran(desk, "host") == ["x"]
    assert len([event for event in desk.told() if event.type == ev.AGENT_TOOL_RESULT]) == 2


async def test_answers_and_words_of_one_message_go_on_with_the_same_turn(desk: Desk) -> None:
    await desk.turn("Ask. [[script:mixed]]")
    first, second = questions(desk)
    desk.answer(second, ev.text_block("Red."))
    desk.confirm(by_command(desk, "echo y"), "allow")
    desk.confirm(by_command(desk, "echo x"), "deny")
    desk.answer(first, ev.text_block("Blue."))
    assert (await desk.try_it()).text == "Thanks."
    assert [words for name, words, _ in results(desk) if name == NAME] == ["Blue.", "Red."]
    assert ran(desk, "host") == ["y"]


@pytest.mark.parametrize("lost", [1, 2, 3, 4])
async def test_a_worker_that_is_lost_before_the_message_is_heard_makes_no_call_twice(desk: Desk, lost: int) -> None:
    await desk.turn("Ask. [[script:mixed]]")
    desk.confirm(by_command(desk, "echo x"), "allow")
    desk.next_turn("Never mind. [[script:short]]")
    desk.log.crash_at, desk.log.crash_after_commit = desk.log.appends + lost, True
    with contextlib.suppress(Crash):
        await desk.try_it()
    desk.log.crash_at = None
    assert (await desk.try_it()).text == "Short."
    words = [words for name, words, _ in results(desk) if name == "Bash"]
    assert ran(desk, "host") == ["x"] or UNKNOWN in words
    assert len(ran(desk, "host")) <= 1
    assert len(results(desk)) == 4
