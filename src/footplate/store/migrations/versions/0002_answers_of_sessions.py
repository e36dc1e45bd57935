"""Stored answers know their session, so that deleting a session deletes what they repeat of it."""

from footplate.store.migrations.script import run_sql

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    run_sql("0002_answers_of_sessions.sql")
