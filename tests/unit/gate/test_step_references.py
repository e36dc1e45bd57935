"""References in shell steps: where they are allowed, and that a value is always exactly one word."""

import random
import shlex

import pytest
from bench.support.queue.hostile_values import hostile_values

from footplate.domain.errors import InvalidRequest, Permanent
from footplate.gate.shell.step_references import check_command, substitute_references

REF = "${steps.build.stdout}"


@pytest.mark.parametrize(
    "command", [f"grep {REF} file", f"git commit -m {REF}", f"./deploy {REF} --now", f"true && echo {REF} | cat; ls"]
)
def test_a_reference_is_a_whole_argument(command: str) -> None:
    check_command(command)


@pytest.mark.parametrize(
    "command",
    [
        f'echo "{REF}"', f"echo '{REF}'", f"echo a{REF}", f"echo {REF}b", f"{REF}", f"{REF} arg", f"echo x > {REF}",
        f"cat <<E\n{REF}\nE", f"X={REF} ls", f"for i in {REF}; do ls; done", f"[ {REF} = a ]", f"echo $(({REF}))",
        f"mapfile {REF}",
        f"bash -c {REF}", f"eval {REF}", f"env {REF}", f"python3 -c {REF}", f"sed {REF} f", f"ssh host {REF}",
        f"xargs {REF}", f"find . -exec {REF} ;", f"echo {REF} | sh", f"sudo {REF}", f"f() {{ echo {REF}; }}; f",
        f"echo \\{REF}", "echo ${steps.build}", "echo ${steps.build.nothing}", "echo ${steps.Build.stdout}",
    ],
)  # fmt: skip
def test_a_reference_anywhere_else_is_refused(command: str) -> None:
    with pytest.raises(InvalidRequest):
        check_command(command)


@pytest.mark.parametrize("value", hostile_values(60, random.Random(1)))
def test_a_value_is_one_argument_or_refused(value: str) -> None:
    is_argument = not value.startswith(("-", "+")) and value.replace("\n", "").replace("\t", "").isprintable()
    is_plain = is_argument and len(value) < 5000
    try:
        text = substitute_references(f"printf %s {REF} end", lambda _: value)
    except Permanent:
        assert not is_plain
    else:
        assert is_plain
        assert shlex.split(text) == ["printf", "%s", value, "end"]


def test_a_value_that_makes_a_program_run_code_is_refused() -> None:
    for command, value in (
        (f"read -r {REF}", "a[$(touch pwned)]"),
        (f"awk {REF} file", 'BEGIN { system("touch pwned") }'),
        (f"git {REF} log", "-ccore.pager=touch pwned"),
    ):
        with pytest.raises(Permanent):
            substitute_references(command, lambda _, value=value: value)


def test_values_are_not_substituted_again() -> None:
    text = substitute_references(f"echo {REF} {REF}", lambda _: REF)
    assert text == f"echo '{REF}' '{REF}'"


def test_a_nul_character_is_refused() -> None:
    with pytest.raises(Permanent):
        substitute_references(f"echo {REF}", lambda _: "a\0b")


def test_a_value_is_no_option_unless_the_author_ended_the_options() -> None:
    with pytest.raises(Permanent):
        substitute_references(f"git log {REF}", lambda _: "--output=x")
    assert substitute_references(f"git log -- {REF}", lambda _: "--output=x") == "git log -- --output=x"
