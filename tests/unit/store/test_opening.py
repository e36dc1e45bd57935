"""A database that cannot be opened is named, without its password, with the reason and what to do."""

import pytest

from footplate.domain.errors import Unavailable
from footplate.stack.ports import free_port
from footplate.store.database import Database, place_of


@pytest.mark.parametrize(
    ("dsn", "place"),
    [
        ("postgresql://u:secret@db.example:5433/cell", "db.example:5433/cell"),
        ("postgresql://u:sec/re?t@db.example/cell?sslmode=require", "db.example/cell"),
        ("postgresql://db.example/cell?password=secret", "db.example/cell"),
        ("postgresql:///cell?host=/run/postgresql", "/cell"),
        ("postgresql://u:s@cret@one:1,two:2/cell", "one:1,two:2/cell"),
    ],
)
def test_its_place(dsn: str, place: str) -> None:
    assert place_of(dsn) == place


async def test_nobody_is_there() -> None:
    port = free_port()
    with pytest.raises(Unavailable) as caught:
        await Database.open(f"postgresql://u:secret@127.0.0.1:{port}/cell", size=1)
    assert f"127.0.0.1:{port}/cell cannot be opened" in caught.value.message
    assert "onnect" in caught.value.message
    assert "FOOTPLATE_DATABASE_URL" in caught.value.help_text
    assert "secret" not in caught.value.advice
