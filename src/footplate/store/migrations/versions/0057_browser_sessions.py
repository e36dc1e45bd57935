"""Browser sessions, one-time codes, and the failed attempts to sign in."""

from footplate.store.migrations.script import run_sql

revision = "0057"
down_revision = "0055"


def upgrade() -> None:
    run_sql("0057_browser_sessions.sql")
