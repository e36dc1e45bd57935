"""The approval prompt reads a decision from the terminal."""

import asyncio
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from footplate.cli.follow import approval_prompt
from footplate.cli.follow.approval_prompt import TypedDecision
from footplate.client import Approval

CALL = Approval.model_validate(
    {
        "id": "sevt_1",
        "status": "pending",
        "session_id": "sesn_1",
        "turn_id": "turn_1",
        "name": "bash",
        "input": {"command": "git push"},
        "created_at": "2026-11-15T12:00:00Z",
    }
)


@pytest.fixture
def keyboard(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A terminal as stdin. Bytes written to this descriptor are typed."""
    ours, theirs = os.openpty()
    with os.fdopen(theirs, "r", encoding="utf-8") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        yield ours
    os.close(ours)


@pytest.mark.parametrize(
    ("typed", "decision"), [(b"y\n", "allow"), (b"no\n", "deny"), (b"\n", None), (b"later\n", None)]
)
async def test_the_typed_decision_is_returned(keyboard: int, typed: bytes, decision: str | None) -> None:
    asyncio.get_running_loop().call_later(0.1, os.write, keyboard, typed)
    decided = await approval_prompt.ask_decision(CALL)
    assert (decided.result if decided else None) == decision


async def test_input_typed_before_the_prompt_is_ignored(keyboard: int) -> None:
    os.write(keyboard, b"y\n")
    asyncio.get_running_loop().call_later(0.2, os.write, keyboard, b"n\n")
    assert await approval_prompt.ask_decision(CALL) == TypedDecision("deny")


@pytest.fixture
def type_lines(keyboard: int, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Answers the next prompts with these lines."""
    del keyboard  # only its terminal is needed

    def set_lines(*lines: str) -> None:
        remaining = iter(lines)

        async def read_line() -> str:
            return next(remaining)

        monkeypatch.setattr(approval_prompt, "_read_line", read_line)

    return set_lines


@pytest.mark.parametrize(
    ("lines", "rule"), [(("s", ""), "Bash(git push)"), (("s", "Bash(git push *)"), "Bash(git push *)")]
)
async def test_a_call_can_be_allowed_for_the_session(
    type_lines: Callable[..., None], lines: tuple[str, ...], rule: str
) -> None:
    type_lines(*lines)
    assert await approval_prompt.ask_decision(CALL, can_edit=True) == TypedDecision("allow", session_rule=rule)


async def test_the_input_can_be_edited_and_is_shown_again(
    type_lines: Callable[..., None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("EDITOR", raising=False)
    monkeypatch.delenv("VISUAL", raising=False)
    type_lines("e", "not JSON", "e", '{"command": "git status"}', "y")
    decided = await approval_prompt.ask_decision(CALL, can_edit=True)
    assert decided == TypedDecision("allow", {"command": "git status"})
    assert "is not valid JSON" in (err := capsys.readouterr().err)
    assert err.rindex("command: git status") < err.rindex("Allow it?")


async def test_a_call_that_a_rule_holds_cannot_be_allowed_for_the_session(type_lines: Callable[..., None]) -> None:
    held = CALL.model_copy(update={"permission": {"reason": "", "rule": "Bash(git push *)", "layer": "agent"}})
    type_lines("s", "n")
    assert await approval_prompt.ask_decision(held, can_edit=True) == TypedDecision("deny")


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"name": "bash", "input": {"command": "ls *.py"}}, "Bash"),
        ({"name": "write", "input": {"file_path": "a.py"}}, "Write"),
        ({"name": "find", "mcp_server_name": "docs"}, "mcp__docs__find"),
        ({"permission": {"hook": "guard", "rule": None}}, None),
    ],
)
def test_the_suggested_rule_allows_the_call(fields: dict[str, Any], rule: str | None) -> None:
    assert approval_prompt.suggest_rule(CALL.model_copy(update=fields)) == rule
