"""Approving a call with another person's edited input fails if there is no edited input."""

from datetime import UTC, datetime
from typing import Any

import pytest
import typer

from footplate.cli.actions.approvals import choose_edit
from footplate.client import Approval


def _approval(**fields: Any) -> Approval:
    made = {"id": "evt_1", "status": "pending", "session_id": "s", "turn_id": "t", "created_at": datetime.now(UTC)}
    return Approval.model_validate({**made, **fields})


def test_the_input_edited_by_another_person_is_used() -> None:
    assert choose_edit(_approval(edited_input={"command": "ls"}, edited_by="ann")) == {"command": "ls"}
    with pytest.raises(typer.BadParameter, match="evt_1 has no edited input"):
        choose_edit(_approval())
