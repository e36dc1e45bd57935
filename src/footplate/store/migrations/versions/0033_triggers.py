"""Triggers, by which other systems start sessions, and the deliveries to them."""

from footplate.store.migrations.script import run_sql

revision = "0033"
down_revision = "0032"


def upgrade() -> None:
    run_sql("0033_triggers.sql")
