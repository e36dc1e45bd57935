"""Pipeline files: what they become, and errors that name the line and column."""

import json

import pytest
import yaml
from jsonschema import Draft202012Validator

from footplate.cli.pipeline_file.pipeline_models import generate_schema
from footplate.cli.pipeline_file.pipeline_parser import InvalidPipeline, parse_pipeline

FILE = """\
steps:
  - name: build
    shell: make
    timeout: 60
  - name: fix
    if: steps.build.status == "failed"
    prompt: "Fix it: ${steps.build.stderr}"
    on_failure: retry
    attempts: 2
  - external: Review it
    on_failure: continue
"""


@pytest.mark.requirement("O2")
def test_a_file_becomes_steps_of_the_api() -> None:
    assert parse_pipeline(FILE, "p.yaml").to_wire() == [
        {"kind": "shell", "command": "make", "name": "build", "timeout_seconds": 60, "on_failure": "stop"},
        {
            "kind": "prompt",
            "content": "Fix it: ${steps.build.stderr}",
            "name": "fix",
            "condition": 'steps.build.status == "failed"',
            "on_failure": "retry",
            "max_attempts": 2,
        },
        {"kind": "external", "instructions": "Review it", "on_failure": "continue"},
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "p.yaml:1:1: a pipeline must be a mapping with the field steps"),
        ("- shell: ls", "p.yaml:1:1: a pipeline must be a mapping with the field steps"),
        ("steps: []", "p.yaml:1:8: steps must have at least one step"),
        ("steps: 3", "p.yaml:1:8: steps must be a valid list"),
        ("steps:\n  - shell: [", "p.yaml:2:13: not valid YAML: expected the node content, but found '<stream end>'"),
        ("steps:\n  - shell: a\n    shell: b", "p.yaml:3:5: not valid YAML: shell appears twice"),
        ("a: \x00", "p.yaml: not valid YAML: unacceptable character"),
        (
            "steps:\n  - ls",
            "p.yaml:2:5: a step must have exactly one of the fields prompt, shell, external, parallel, merge and push",
        ),
        (
            "steps:\n  - shell: ls\n    prompt: Hello",
            "p.yaml:2:5: a step must have exactly one of the fields prompt, shell, external, parallel, merge and push",
        ),
        (
            "steps:\n  - deploy: main",
            "p.yaml:2:5: there is no field deploy; a step must have exactly one of the fields prompt, shell, external",
        ),
        ("steps:\n  - shell: true", "p.yaml:2:12: shell must be text. Put the value into quotes"),
        ("steps:\n  - shell: ls\n    iff: 'true'", "p.yaml:3:5: there is no field iff. Did you mean if?"),
        (
            "steps:\n  - shell: ls\n    on_failure: ignore",
            "p.yaml:3:17: on_failure must be stop, continue or retry",
        ),
        ("steps:\n  - shell: ls\n    timeout: 0", "p.yaml:3:14: timeout must be greater than 0"),
        ("steps:\n  - shell: ls\n    attempts: 3", "p.yaml:3:15: attempts: only a step with `on_failure: retry`"),
        ("steps:\n  - shell: ls\n    name: Build it", "p.yaml:3:11: name must be a lower-case letter"),
        ("steps:\n  - shell: ls\n    if: steps.a. ==", "p.yaml:3:9: if: not a valid CEL expression"),
        (
            "steps:\n  - shell: ls\n  - shell: echo ${steps.a.stdout}",
            "p.yaml:3:5: ${steps.a.stdout} refers to no earlier step. No named step is before it",
        ),
        (
            'steps:\n  - {name: a, shell: ls}\n  - shell: echo "${steps.a.stdout}"',
            "p.yaml:3:12: shell: a reference to a step cannot be used here",
        ),
        (
            "steps:\n  - {name: a, shell: ls}\n  - prompt: Read ${steps.a.output}",
            "p.yaml:3:13: prompt: the result of a step has no field 'output'",
        ),
        ("steps:\n  - parallel: []", "p.yaml:2:15: parallel must have at least one session"),
        (
            "steps:\n  - parallel:\n    - {shell: ls, prompt: Hello}",
            "p.yaml:3:7: a session must have exactly one of the fields prompt, shell and steps",
        ),
        (
            "steps:\n  - parallel:\n    - {shell: ls, promt: Hello}",
            "p.yaml:3:19: there is no field promt. Did you mean prompt?",
        ),
        (
            "steps:\n  - parallel: [{shell: ls}]\n    branch: best",
            "p.yaml:3:5: there is no field branch. Did you mean b",
        ),
        (
            "steps:\n  - parallel: [{shell: ls}]\n    branches: best",
            "p.yaml:2:5: a step with `branches: best` must have a check",
        ),
        (
            "steps:\n  - parallel: [{shell: ls}]\n    check: ls",
            "p.yaml:3:12: check: only a step with `branches: best` has a check",
        ),
        (
            "steps:\n  - parallel:\n    - steps:\n      - parallel: [{shell: ls}]",
            "p.yaml:4:9: a step of a session must have exactly one of the fields prompt, shell and external",
        ),
        (
            "steps:\n  - parallel: [{shell: 'echo ${steps.a.stdout}'}]",
            "p.yaml:2:5: ${steps.a.stdout} refers to no earlier step. No named step is before it",
        ),
    ],
)
def test_an_error_names_its_line_and_column(text: str, message: str) -> None:
    with pytest.raises(InvalidPipeline) as raised:
        parse_pipeline(text, "p.yaml")
    assert str(raised.value).startswith(message)


def test_all_errors_are_reported_in_the_order_of_the_file() -> None:
    text = "steps:\n  - shell: ls\n    timeout: -1\n    name: A\n  - prompt: ''\n"
    with pytest.raises(InvalidPipeline) as raised:
        parse_pipeline(text, "p.yaml")
    assert [line.split(":")[1] for line in str(raised.value).splitlines()] == ["3", "4", "5"]


@pytest.mark.requirement("O5")
def test_a_parallel_step_becomes_sessions_of_the_api() -> None:
    text = """\
steps:
  - name: all
    parallel:
      - {name: a, prompt: Go}
      - steps: [{name: one, shell: ls}, {prompt: "${steps.one.stdout}"}]
        agent: agent_1
    max_running: 2
    branches: best
    check: make test
"""
    assert parse_pipeline(text, "p.yaml").to_wire() == [
        {
            "kind": "parallel",
            "name": "all",
            "sessions": [
                {"name": "a", "prompt": "Go"},
                {
                    "agent": "agent_1",
                    "steps": [
                        {"kind": "shell", "command": "ls", "name": "one", "on_failure": "stop"},
                        {"kind": "prompt", "content": "${steps.one.stdout}", "on_failure": "stop"},
                    ],
                },
            ],
            "max_running": 2,
            "wait_for": "all",
            "branches": "best",
            "check": "make test",
            "on_failure": "stop",
        }
    ]


def test_a_step_that_delivers_names_a_branch_or_has_options() -> None:
    text = """\
steps:
  - {name: deliver, merge: main}
  - merge: {into: release/2, message: "From ${steps.deliver.stdout}", project: proj_1}
    on_failure: continue
  - push: {}
  - push: new
"""
    assert parse_pipeline(text, "p.yaml").to_wire() == [
        {"kind": "merge", "name": "deliver", "into": "main", "on_failure": "stop"},
        {
            "kind": "merge",
            "into": "release/2",
            "message": "From ${steps.deliver.stdout}",
            "project_id": "proj_1",
            "on_failure": "continue",
        },
        {"kind": "push", "on_failure": "stop"},
        {"kind": "push", "branch": "new", "on_failure": "stop"},
    ]
    assert Draft202012Validator(json.loads(generate_schema())).is_valid(yaml.safe_load(text))


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("{merge: -x}", "'-x' is not a valid branch name. Examples: main, release/2."),
        ("{merge: 3}", "merge must be the name of a branch, or a mapping with the options of the delivery"),
        ("{merge: {branch: x}}", "there is no field branch. Use into, message, project."),
        ("{push: {branch: a b}}", "branch: 'a b' is not a valid branch name. Examples: main, release/2."),
        ("{merge: main, timeout: 3}", "a step that delivers has no timeout"),
        ("{merge: {message: '${steps.none.text}'}}", "${steps.none.text} refers to no earlier step."),
        (
            "{prompt: '${steps.both.sessions.c.text}'}",
            "${steps.both.sessions.c.text} refers to a session that the step",
        ),
        (
            "{prompt: '${steps.both.sessions.2.text}'}",
            "${steps.both.sessions.2.text} refers to a session that the step",
        ),
    ],
)
def test_an_invalid_delivery_or_session_is_reported(step: str, message: str) -> None:
    text = f"steps:\n  - {{name: both, parallel: [{{name: a, shell: ls}}, {{shell: ls}}]}}\n  - {step}\n"
    with pytest.raises(InvalidPipeline) as raised:
        parse_pipeline(text, "p.yaml")
    assert str(raised.value).partition(" ")[2].startswith(message), raised.value


def test_a_step_may_refer_to_one_session_of_an_earlier_step() -> None:
    steps = ("{name: both, parallel: [{name: a, shell: ls}]}", "{prompt: '${steps.both.sessions.a.text}'}")
    assert len(parse_pipeline("steps:\n" + "".join(f"  - {step}\n" for step in steps), "p.yaml").steps) == 2


def test_steps_for_a_session_that_exists_may_refer_to_its_steps() -> None:
    text = "steps:\n  - shell: echo ${steps.earlier.stdout}"
    assert len(parse_pipeline(text, "p.yaml", is_complete=False).steps) == 1


def test_the_schema_accepts_the_same_files() -> None:
    validator = Draft202012Validator(json.loads(generate_schema()))
    assert validator.is_valid(yaml.safe_load(FILE))
    assert not validator.is_valid(yaml.safe_load("steps:\n  - shell: ls\n    prompt: Hello"))
    assert not validator.is_valid(yaml.safe_load("steps:\n  - shell: ls\n    on_failure: ignore"))
