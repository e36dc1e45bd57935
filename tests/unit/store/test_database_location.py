"""The location of a database in messages does not contain its password."""

import pytest

from footplate.store.database import address_without_secrets


@pytest.mark.parametrize(
    ("dsn", "location"),
    [
        ("postgresql://u:secret@db.example:5433/cell", "db.example:5433/cell"),
        ("postgresql://u:sec/re?t@db.example/cell?sslmode=require", "db.example/cell"),
        ("postgresql://db.example/cell?password=secret", "db.example/cell"),
        ("postgresql:///cell?host=/run/postgresql", "/cell"),
        ("postgresql://u:s@cret@one:1,two:2/cell", "one:1,two:2/cell"),
    ],
)
def test_the_location_has_no_password(dsn: str, location: str) -> None:
    assert address_without_secrets(dsn) == location
