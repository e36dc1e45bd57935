"""Triggers: values of a payload in steps and titles, conditions, and references in places where they are refused."""

import random
import shlex
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import pytest
from bench.support.queue.hostile_values import hostile_values

from footplate.domain.errors import InvalidRequest, Permanent
from footplate.domain.json import Json, JsonObject
from footplate.domain.sessions import step_references, triggers
from footplate.domain.sessions.deployments import SessionTemplate
from footplate.domain.sessions.steps import ChildRequest, ParallelSessions, StepDefinition, StepDelivery, StepKind
from footplate.domain.sessions.triggers import TriggerDefinition
from footplate.gate.shell.step_references import check_command, substitute_references

pytestmark = pytest.mark.requirement("O8")

SHELL = StepDefinition(kind=StepKind.SHELL, command="git checkout ${payload.branch}")
PAYLOAD: JsonObject = {"branch": "main", "n": 3, "none": None, "list": [{"a": "x"}], "deep": {"b": True}}
CHECK = partial(check_command, with_payload=True)


def define(*steps: StepDefinition, **fields: object) -> TriggerDefinition:
    template = SessionTemplate(agent={}, steps=[(step, {}) for step in steps or (SHELL,)])
    return replace(TriggerDefinition(name="push", template=template), **fields)  # pyrefly: ignore[bad-argument-type]


def prompt(text: str) -> StepDefinition:
    return StepDefinition(kind=StepKind.PROMPT, content=({"type": "text", "text": text},))


@pytest.mark.parametrize(
    ("path", "value"),
    [("branch", "main"), ("n", "3"), ("none", ""), ("list.0.a", "x"), ("list", '[{"a":"x"}]'), ("deep.b", "true")],
)
def test_a_value_of_the_payload_is_text(path: str, value: str) -> None:
    assert triggers.find_value(PAYLOAD, path) == value


@pytest.mark.parametrize("path", ["other", "branch.0", "list.1", "list.-1", "list.x", "n.a", "none.a", "deep.b.c"])
def test_a_value_that_is_missing_is_refused(path: str) -> None:
    with pytest.raises(InvalidRequest):
        triggers.find_value(PAYLOAD, path)


def test_steps_get_the_values_of_their_references_and_no_others() -> None:
    first = prompt("Look at ${payload.deep} and ${steps.a.stdout}")
    work = triggers.build_work(define(first, SHELL, title="Push to\n${payload.branch}"), PAYLOAD)
    assert work.title == "Push to main"
    assert [step.payload_values for step, _ in work.steps] == [{"deep": '{"b":true}'}, {"branch": "main"}]
    stored = work.steps[0][0]
    assert StepDefinition.load("prompt", None, stored.dump()) == stored
    plain = triggers.build_work(define(prompt("Hello")), PAYLOAD)
    assert (plain.title, plain.steps[0][0].payload_values) == ("push", None)
    assert triggers.build_work(define(title="${payload.none}"), PAYLOAD).title == "push"


def test_a_value_that_looks_like_a_reference_is_not_replaced() -> None:
    values: Mapping[str, str] = {"a": "${steps.secret.stdout}${payload.b}"}
    text = step_references.replace_references(
        "${payload.a} ${steps.x.text}", lambda one: values[one.path] if one.path else "result", with_payload=True
    )
    assert text == "${steps.secret.stdout}${payload.b} result"
    assert step_references.replace_references("${payload.a}", lambda _: "") == "${payload.a}"


@pytest.mark.parametrize("value", hostile_values(60, random.Random(2)))
def test_a_value_in_a_command_is_one_argument_or_refused(value: str) -> None:
    command = "printf %s ${payload.title} ${steps.a.stdout}"
    try:
        text = substitute_references(command, lambda one: value if one.path else "b", with_payload=True)
    except Permanent:
        return
    assert shlex.split(text) == ["printf", "%s", value, "b"]


@pytest.mark.parametrize(
    "step",
    [
        replace(SHELL, command="echo '${payload.a}'"),
        replace(SHELL, command="eval ${payload.a}"),
        replace(SHELL, command="${payload.a}"),
        replace(SHELL, command="echo ${payload.a b}"),
        replace(SHELL, condition="'${payload.a}' == ''"),
        StepDefinition(kind=StepKind.PUSH, delivery=StepDelivery(branch="${payload.a}")),
        StepDefinition(
            kind=StepKind.PARALLEL,
            parallel=ParallelSessions(sessions=(ChildRequest(steps=(prompt("${payload.a}"), prompt("b"))),)),
        ),
        StepDefinition(
            kind=StepKind.PARALLEL,
            parallel=ParallelSessions(sessions=(ChildRequest(steps=(replace(SHELL, command="eval ${payload.a}"),)),)),
        ),
    ],
)
def test_a_reference_in_another_place_is_refused(step: StepDefinition) -> None:
    with pytest.raises(InvalidRequest):
        triggers.check_definition(define(step), CHECK)


def test_references_in_texts_are_accepted() -> None:
    delivery = StepDefinition(kind=StepKind.MERGE, delivery=StepDelivery(message="Fix ${payload.n}"))
    external = StepDefinition(kind=StepKind.EXTERNAL, instructions="Review ${payload}")
    request = ChildRequest(steps=(prompt("${payload.a-b_c.0}"),))
    parallel = StepDefinition(kind=StepKind.PARALLEL, parallel=ParallelSessions(sessions=(request,)))
    triggers.check_definition(define(SHELL, delivery, external, parallel, title="${payload.n}"), CHECK)


@pytest.mark.parametrize(
    ("condition", "payload", "expected"),
    [
        (None, {}, True),
        ('payload.branch == "main"', PAYLOAD, True),
        ("has(payload.other)", PAYLOAD, False),
        ('payload.list.exists(one, one.a == "x")', PAYLOAD, True),
        ("payload.n > 1", {"n": 2**64 - 1}, True),
    ],
)
def test_a_condition_decides_whether_a_delivery_acts(
    condition: str | None,
    payload: JsonObject,
    expected: bool,  # noqa: FBT001
) -> None:
    assert triggers.is_met(define(condition=condition), payload) is expected


@pytest.mark.parametrize(("condition", "value"), [("payload.a.b", {}), ("payload.a", "text"), ("payload.a", None)])
def test_a_condition_without_a_truth_value_fails(condition: str, value: Json) -> None:
    with pytest.raises(Permanent):
        triggers.is_met(define(condition=condition), {"a": value})
