"""Drops indexes on frequently updated columns, so that PostgreSQL updates session heads and steps in place (HOT)."""

from footplate.store.migrations.script import run_sql

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    run_sql("0020_updates_in_place.sql")
