"""A failed connection to the database reports the address and the reason, without the password."""

from urllib.parse import urlsplit

import pytest

from footplate.domain.errors import Unavailable
from footplate.domain.organisations.principals import Principal
from footplate.stack import Stack
from footplate.stack.free_ports import find_free_port
from footplate.store.database import Database
from footplate.store.log.fenced_turn_writes import TURN_STATEMENTS

from .cell import Cell


async def test_a_refused_login_reports_the_address_and_the_reason(stack: Stack) -> None:
    parts = urlsplit(stack.settings.database_url)
    address = f"{parts.hostname}:{parts.port}"
    wrong = parts._replace(netloc=f"{parts.username}:no-such-secret@{address}").geturl()
    with pytest.raises(Unavailable, match=rf"at {address}{parts.path}: password .*failed") as caught:
        await Database.open(wrong, size=1)
    assert "no-such-secret" not in caught.value.advice
    with pytest.raises(Unavailable, match=rf"at {address}/nowhere: database .*does not exist"):
        await Database.open(parts._replace(path="/nowhere").geturl(), size=1)


async def test_an_unreachable_database_is_reported() -> None:
    port = find_free_port()
    with pytest.raises(Unavailable) as caught:
        await Database.open(f"postgresql://u:secret@127.0.0.1:{port}/cell", size=1)
    assert f"Cannot connect to the database at 127.0.0.1:{port}/cell:" in caught.value.message
    assert "onnect" in caught.value.message
    assert "FOOTPLATE_DATABASE_URL" in caught.value.help_text
    assert "secret" not in caught.value.advice


async def test_planning_statements_changes_nothing(cell: Cell, principal: Principal) -> None:
    session_id = await cell.session(principal, "one")
    before = await cell.all_rows(session_id)
    await cell.database.plan_statements(TURN_STATEMENTS)
    assert await cell.all_rows(session_id) == before
    assert (await cell.claim(session_id, principal)).attempt == 1
