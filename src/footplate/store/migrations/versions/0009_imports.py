"""Sessions that began elsewhere."""

from footplate.store.migrations.script import run_sql

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    run_sql("0009_imports.sql")
