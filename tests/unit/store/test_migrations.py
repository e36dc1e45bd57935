"""Migrations form one chain. Two migrations with the same predecessor would block every upgrade."""

from pathlib import Path

from footplate.store import migrations, schema_upgrade


def test_migrations_form_one_chain() -> None:
    versions = Path(migrations.__file__).parent / "versions"
    names = sorted(file.name[:4] for file in versions.glob("0*.py"))
    assert schema_upgrade.newest_revision() == names[-1]
