"""Inputs that were edited and wait for another person's approval."""

from footplate.store.migrations.script import run_sql

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    run_sql("0019_edited_inputs.sql")
