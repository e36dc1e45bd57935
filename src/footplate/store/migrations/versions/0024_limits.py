"""Limits of organisations and members; turns that wait because of them."""

from footplate.store.migrations.script import run_sql

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    run_sql("0024_limits.sql")
