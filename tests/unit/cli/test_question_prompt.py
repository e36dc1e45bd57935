"""Questions at the terminal: choices by number or label, several of them, and free text."""

from collections.abc import Callable
from typing import Any

import pytest
import typer
from tests.unit.cli.test_approval_prompt import keyboard, type_lines

from footplate.cli.actions.questions import build_reply
from footplate.cli.follow import question_prompt
from footplate.cli.render.question_format import render_question
from footplate.client import Question

__all__ = ["keyboard", "type_lines"]

_ITEMS: list[dict[str, Any]] = [
    {"question": "Which colour?", "header": "Colour", "options": [{"label": "Red"}, {"label": "Blue"}]},
    {
        "question": "Which sizes?",
        "options": [{"label": "S", "description": "Small.\x1b[2J"}, {"label": "L"}],
        "multi_select": True,
        "allow_free_text": False,
    },
]
QUESTION = Question.model_validate(
    {
        "id": "sevt_1",
        "status": "pending",
        "session_id": "sesn_1",
        "turn_id": "turn_1",
        "questions": _ITEMS,
        "default": {"Which colour?": "Red"},
        "created_at": "2026-11-15T12:00:00Z",
        "expires_at": "2026-11-16T12:00:00Z",
    }
)


async def test_each_question_is_asked_until_the_reply_fits(type_lines: Callable[..., None]) -> None:
    type_lines("green", "M", "3", "1, l")
    reply = await question_prompt.ask_question(QUESTION)
    assert reply == {"Which colour?": "green", "Which sizes?": ["S", "L"]}
    type_lines("2", "")
    assert await question_prompt.ask_question(QUESTION) is None


def test_a_question_is_shown_with_its_options_and_default() -> None:
    assert [line.plain for line in render_question(QUESTION, 80)] == [
        "Colour: Which colour?",
        "  1. Red",
        "  2. Blue",
        "Which sizes?",
        "  1. S",
        "     Small.<U+001B>[2J",
        "  2. L",
        "Without an answer by 2026-11-16 12:00 UTC, the default applies: Red",
    ]


def test_choices_and_texts_of_the_command_fit_the_questions_in_order() -> None:
    assert build_reply(QUESTION, ["blue", "1,2"], []) == {"Which colour?": "Blue", "Which sizes?": ["S", "L"]}
    assert build_reply(QUESTION, ["-", "2"], ["2"]) == {"Which colour?": "2", "Which sizes?": ["L"]}
    for choices, texts in ((["1"], []), (["1", "2", "1"], []), (["3", "1"], []), (["1", "1"], ["x"])):
        with pytest.raises(typer.BadParameter):
            build_reply(QUESTION, choices, texts)
