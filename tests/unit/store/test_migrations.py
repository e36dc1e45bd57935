"""Migrations stand in one row: two that follow the same one would leave every database where it is."""

from pathlib import Path

from footplate.store import migrate, migrations


def test_each_follows_the_one_before() -> None:
    versions = Path(migrations.__file__).parent / "versions"
    names = sorted(file.name[:4] for file in versions.glob("0*.py"))
    assert migrate.newest() == names[-1]
