"""The approval prompt reads a decision from the terminal."""

import asyncio
import os
from collections.abc import Iterator

import pytest

from footplate.cli.follow import approval_prompt
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
    assert await approval_prompt.ask_decision(CALL) == decision


async def test_input_typed_before_the_prompt_is_ignored(keyboard: int) -> None:
    os.write(keyboard, b"y\n")
    asyncio.get_running_loop().call_later(0.2, os.write, keyboard, b"n\n")
    assert await approval_prompt.ask_decision(CALL) == "deny"
