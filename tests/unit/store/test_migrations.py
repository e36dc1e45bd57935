"""Migrations form one chain, and the previous version can run on the schema that they make."""

from pathlib import Path

import pytest
from alembic.script import ScriptDirectory
from bench.support.upgrade.contracting_statements import find_contracting_statements
from bench.support.upgrade.previous_version import load_previous_version

from footplate.store import migrations, schema_upgrade
from footplate.store.migrations.schema_revisions import known_revision

VERSIONS = Path(migrations.__file__).parent / "versions"


def test_migrations_form_one_chain() -> None:
    """Two migrations with the same predecessor would block every upgrade."""
    names = sorted(file.name[:4] for file in VERSIONS.glob("0*.py"))
    assert schema_upgrade.newest_revision() == names[-1] == known_revision()


def test_the_previous_version_can_run_on_the_schema() -> None:
    """A migration that removes or changes what older code uses declares the code that it needs."""
    previous = load_previous_version().schema
    scripts = ScriptDirectory.from_config(schema_upgrade.alembic_config("postgresql://unused"))
    later = [*scripts.iterate_revisions("head", previous)]
    assert later
    faults = {
        script.revision: found
        for script in later
        if not hasattr(script.module, "needs_code")
        and (found := find_contracting_statements((VERSIONS / f"{Path(script.path).stem}.sql").read_text()))
    }
    assert faults == {}, "Expand first, and contract in a later migration with `needs_code` (docs/upgrades.md)."


@pytest.mark.parametrize(
    "statement",
    [
        "drop table a",
        "drop view a",
        "DROP FUNCTION a(text)",
        "alter table a drop column b",
        "alter table a drop b",
        "alter table a add column b text, drop column if exists c",
        "alter table a rename column b to c",
        "alter table a rename to b",
        "alter type a rename value 'b' to 'c'",
        "alter table a alter column b type bigint",
        "alter table a alter b set data type bigint",
        "alter table a alter column b set not null",
        "alter table a add column b text not null",
        "alter table a add b text default 'a, b', add c numeric(3, 2) not null",
        "create table x (a text); alter table a\n  -- explained\n  drop column b;",
    ],
)
def test_a_statement_that_older_code_does_not_survive_is_found(statement: str) -> None:
    assert len(find_contracting_statements(statement)) == 1


@pytest.mark.parametrize(
    "statement",
    [
        "create table a (b text not null)",
        "alter table a add column b text",
        "alter table a add column b text not null default ''",
        "alter table a add b text not null generated always as (c) stored",
        "alter table a drop constraint b, add constraint b check (c is not null)",
        "alter table a add constraint b check (c is not null)",
        "alter table a alter column b drop not null, alter c drop default",
        "drop index a; drop trigger b on a",
        "create function a() returns text language sql as $$ alter table a drop column b; $$",
        "-- alter table a drop column b\nselect 1",
    ],
)
def test_a_statement_that_expands_the_schema_is_not_found(statement: str) -> None:
    assert find_contracting_statements(statement) == []
