"""Adds the append-only audit trail, with decisions of the gate and of people, and changes of policies."""

from footplate.store.migrations.script import run_sql

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    run_sql("0017_audit.sql")
