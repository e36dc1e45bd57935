"""Turns count how often they were handed over."""

from footplate.store.migrations.script import run_sql

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    run_sql("0007_hand_over.sql")
