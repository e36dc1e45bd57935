"""A decision at the terminal that comes too late is a note, and the turn is still followed."""

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import pytest
from tests.unit.cli.test_approval_prompt import CALL

from footplate.cli.follow import approval_prompt
from footplate.cli.follow.approval_prompt import TypedDecision
from footplate.cli.follow.live_approvals import LiveApprovalView
from footplate.cli.render.turn_views import TextView
from footplate.client import Approval, AsyncFootplate, Conflict, Forbidden
from footplate.client.response_models import Event


class _Server:
    """Refuses every decision on the call."""

    def __init__(self, error: Exception, status: str) -> None:
        self.approvals = self
        self._error = error
        self._statuses = iter(["pending", status])

    async def retrieve(self, event_id: str) -> Approval:
        assert event_id == CALL.id
        return CALL.model_copy(update={"status": next(self._statuses)})

    async def deny(self, _approval: Approval) -> Event:
        raise self._error


@pytest.mark.parametrize(
    ("kind", "status", "note"),
    [
        (Conflict, "allowed", "Your decision came too late. Already decided."),
        (Forbidden, "pending", "Already decided."),
    ],
)
async def test_a_refused_decision_is_a_note(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    kind: type[Conflict | Forbidden],
    status: str,
    note: str,
) -> None:
    async def ask_decision(_approval: Approval, **_options: Mapping[str, Any]) -> TypedDecision:
        return TypedDecision("deny")

    monkeypatch.setattr(approval_prompt, "ask_decision", ask_decision)
    undecided = asyncio.Event()

    async def on_undecided() -> None:
        undecided.set()

    server = cast("AsyncFootplate", _Server(kind(409, {"error": {"message": "Already decided."}}), status))
    view = LiveApprovalView(server, TextView())
    view.ask_about([CALL.id], on_undecided)
    assert view._asking_task is not None
    await view._asking_task
    assert note in capsys.readouterr().err.splitlines()
    assert undecided.is_set() is (status == "pending")
