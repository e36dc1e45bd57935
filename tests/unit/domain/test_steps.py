"""Steps: how they end, and the conditions under which they run."""

import time
from dataclasses import replace

import pytest

from footplate.domain.errors import InvalidRequest, Permanent
from footplate.domain.json import Json, JsonObject
from footplate.domain.sessions import step_references, steps
from footplate.domain.sessions.steps import (
    ChildRequest,
    OnFailure,
    StepDefinition,
    StepDelivery,
    StepEnd,
    StepKind,
    StepState,
)
from footplate.domain.sessions.turns import TurnOutcome, TurnStatus

SHELL = StepDefinition(kind=StepKind.SHELL, command="make")
DONE = TurnOutcome(status=TurnStatus.COMPLETED)
FAILED = replace(DONE, step_failed=True)


def test_a_definition_survives_storage() -> None:
    for definition in (
        replace(SHELL, name="build", condition="true", on_failure=OnFailure.RETRY, max_attempts=7, timeout_seconds=1.5),
        StepDefinition(kind=StepKind.PROMPT, content=({"type": "text", "text": "hi"},)),
        StepDefinition(kind=StepKind.EXTERNAL, instructions="review it", retry_of="step_1"),
        StepDefinition(kind=StepKind.MERGE, delivery=StepDelivery(branch="main", message="Done")),
        StepDefinition(kind=StepKind.PUSH, delivery=StepDelivery(branch="new", project_id="proj_1")),
        StepDefinition(kind=StepKind.MERGE, delivery=StepDelivery()),
    ):
        assert StepDefinition.load(definition.kind.value, definition.name, definition.dump()) == definition


@pytest.mark.requirement("O9", "F7")
def test_the_failure_policy_decides_how_a_step_ends() -> None:
    assert steps.decide_end(SHELL, 1, DONE) == StepEnd(StepState.COMPLETED)
    assert steps.decide_end(SHELL, 1, FAILED) == StepEnd(StepState.FAILED, pauses=True)
    assert steps.decide_end(replace(SHELL, on_failure=OnFailure.CONTINUE), 1, FAILED) == StepEnd(StepState.FAILED)
    retried = replace(SHELL, on_failure=OnFailure.RETRY)
    assert [steps.decide_end(retried, attempt, FAILED).retry_after for attempt in (1, 2, 3)] == [1.0, 2.0, None]
    assert steps.decide_end(retried, 3, FAILED) == StepEnd(StepState.FAILED, pauses=True)
    assert steps.decide_end(retried, 1, replace(FAILED, may_retry=False)).pauses
    assert steps.decide_end(retried, 1, replace(DONE, status=TurnStatus.INTERRUPTED)).state is StepState.CANCELLED
    assert steps.decide_end(retried, 1, replace(DONE, status=TurnStatus.AWAITING)) == StepEnd(StepState.RUNNING)
    assert steps.decide_end(replace(retried, max_attempts=20), 12, FAILED).retry_after == 60.0


def test_a_reference_can_name_one_session_of_a_parallel_step() -> None:
    text = "${steps.work.sessions.first.text} and ${steps.work.sessions.1.outcome}, not ${steps.work.text}"
    found = step_references.find_references(text, where="prompt")
    assert [(one.step, one.session, one.field) for one in found] == [
        ("work", "first", "text"), ("work", "1", "outcome"), ("work", None, "text"),
    ]  # fmt: skip
    assert step_references.replace_references(text, lambda one: one.text) == text
    sessions: list[JsonObject] = [{"name": "first", "text": "a"}, {"name": None, "text": "b"}]
    for wanted, expected in (("first", 0), ("0", 0), ("1", 1), ("2", None), ("second", None)):
        assert step_references.find_session(sessions, wanted) == (None if expected is None else sessions[expected])


@pytest.mark.parametrize(
    "text",
    [
        "${steps.work.sessions}",
        "${steps.work.sessions.text}",
        "${steps.work.sessions.first}",
        "${steps.work.sessions.first.stdout}",
        "${steps.work.sessions.1000.text}",
        "${steps.work.sessions.First.text}",
        "${steps.work.sessions.first.text.more}",
    ],
)
def test_a_malformed_reference_to_a_session_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        step_references.find_references(text, where="prompt")


def test_conditions_are_evaluated_over_results() -> None:
    sessions: list[Json] = [{"outcome": "failed"}, {"outcome": "completed"}]
    build: JsonObject = {"status": "completed", "exit_code": 0, "stdout": "3 warnings", "sessions": sessions}
    for expression, expected in (
        ("steps.build.exit_code == 0", True),
        ('steps.build.stdout.contains("error")', False),
        ('has(steps.test) && steps.test.status == "failed"', False),
        ('steps["build"].status == "completed"', True),
        ('steps.build.sessions[1].outcome == "completed"', True),
    ):
        step_references.check_condition(expression, where="condition")
        assert step_references.evaluate_condition(expression, {"build": build}) is expected
        assert "build" in step_references.names_in_condition(expression) or "test" in expression


@pytest.mark.parametrize("expression", ["steps.build.exit_code ==", "unknown.name", "(" * 2000 + "true" + ")" * 2000])
def test_an_invalid_condition_is_refused(expression: str) -> None:
    with pytest.raises(InvalidRequest):
        step_references.check_condition(expression, where="condition")


@pytest.mark.parametrize("expression", ["steps.other.exit_code == 0", "steps.build.exit_code", '"text"'])
def test_a_condition_without_a_boolean_value_fails(expression: str) -> None:
    with pytest.raises(Permanent):
        step_references.evaluate_condition(expression, {"build": {"exit_code": 0}})


def test_a_condition_cannot_run_for_long() -> None:
    numbers = "[0,1,2,3,4,5,6,7,8,9]"
    expression = "true"
    for name in "abcdefgh":
        expression = f"{numbers}.all({name}, {expression})"
    started = time.process_time()
    with pytest.raises(Permanent):
        step_references.evaluate_condition(expression, {})
    assert time.process_time() - started < 5


def test_references_are_replaced_once() -> None:
    text = "a ${steps.x.stdout} b ${steps.y.exit_code}"
    found = step_references.replace_references(text, lambda one: f"<{one.step}.{one.field}> ${{steps.x.stdout}}")
    assert found == "a <x.stdout> ${steps.x.stdout} b <y.exit_code> ${steps.x.stdout}"


def test_text_of_a_child_in_which_references_were_replaced_is_literal() -> None:
    text = "The model wrote ${steps.none.stdout} and ${steps"
    for step in (
        StepDefinition(kind=StepKind.SHELL, command="true"),
        StepDefinition(kind=StepKind.PROMPT, content=({"type": "text", "text": "go"},)),
    ):
        request = ChildRequest(steps=(step,)).with_text(text)
        assert ChildRequest.load(request.dump()) == request
        assert request.text == text
        assert request.steps[0].is_literal
        assert not step.is_literal
        assert "is_literal" not in step.dump()
