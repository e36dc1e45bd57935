"""Questions of the native harness: the turn parks without a process, and each reply reaches the model once."""

import json
from dataclasses import replace

import pytest

from footplate.domain.json import JsonObject
from footplate.domain.policy.permissions import PermissionOutcome as Gated
from footplate.domain.sessions import events as ev
from footplate.domain.sessions import questions
from footplate.domain.sessions.turns import Mode, TurnStatus

from .doubles import Chunk, Crash, World, call, make_model, text_of
from .test_partial_decisions import read_last_request

INPUT: JsonObject = {
    "questions": [{"question": "Which?", "options": [{"label": "A"}, {"label": "B"}]}],
    "deadline_seconds": 60,
    "default": {"Which?": "B"},
}


@pytest.fixture
def asking(world: World) -> World:
    world.config = replace(world.config, tools=(*world.config.tools, questions.ASK_USER))
    return world


def script(number: int) -> list[Chunk]:
    if number:
        return ["Fine"]
    ask = call("ask_user", json.dumps(INPUT), "c1", 0)
    return [{**ask, **call("bash", '{"command": "touch x"}', "c2", 1)}]


async def test_a_question_parks_the_turn_and_its_reply_reaches_the_model_once(asking: World) -> None:
    asking.gate.outcomes = {"ask_user": Gated.ASK}
    model, double = make_model(asking, script)
    parked = await asking.run(model)
    (asked,) = asking.log.of_type(ev.AGENT_CUSTOM_TOOL_USE)
    assert (parked.status, parked.pending) == (TurnStatus.AWAITING, (asked.id,))
    assert (asked.body["name"], asked.body["input"], asked.body["question"]) == ("ask_user", INPUT, True)
    assert asking.environment.ran == {"touch x": 1}
    assert (await asking.run(model)).pending == (asked.id,)
    asking.send_tool_result(asked.id, "Your answer: A")
    asking.log.crash_at = asking.log.appends + 1
    with pytest.raises(Crash):
        await asking.run(model)
    assert (await asking.run(model)).text == "Fine"
    assert read_last_request(double)[0] == "Your answer: A"
    assert len(double.requests) == 2
    assert len(asking.log.of_type(ev.AGENT_CUSTOM_TOOL_USE)) == 1


@pytest.mark.parametrize(
    ("given", "mode", "expected"),
    [
        (INPUT, Mode.BACKGROUND, 'no one answers questions. The default applies: "Which?"="B".'),
        ({"questions": []}, Mode.INTERACTIVE, "questions"),
        ({**INPUT, "default": {"Who?": "B"}}, Mode.INTERACTIVE, "default: 'Which?' is not answered"),
        ({"questions": [{"question": "Which?"}] * 2}, Mode.INTERACTIVE, "two questions have the same text"),
    ],
)
async def test_a_question_that_cannot_be_asked_has_a_result(
    asking: World, given: JsonObject, mode: Mode, expected: str
) -> None:
    asking.config = replace(asking.config, mode=mode)
    model, _ = make_model(asking, lambda number: ["Fine"] if number else [call("ask_user", json.dumps(given), "c1", 0)])
    assert (await asking.run(model)).text == "Fine"
    (result,) = asking.log.of_type(ev.AGENT_TOOL_RESULT)
    assert expected in text_of(result)
    assert result.body["is_error"] is (mode is Mode.INTERACTIVE)


async def test_a_new_message_closes_the_question(asking: World) -> None:
    model, double = make_model(asking, script)
    await asking.run(model)
    asking.next_turn("turn_2", "Never mind")
    await asking.run(model)
    assert "has no result" in read_last_request(double)[0]
