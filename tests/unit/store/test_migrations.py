"""Migrations form one chain. Two migrations with the same predecessor would block every upgrade."""

from pathlib import Path

from footplate.store import migrate, migrations


def test_each_follows_the_one_before() -> None:
    versions = Path(migrations.__file__).parent / "versions"
    names = sorted(file.name[:4] for file in versions.glob("0*.py"))
    assert migrate.newest_revision() == names[-1]
