"""The feed of an organisation: what has changed in its sessions, in one order."""

from footplate.store.migrations.script import run_sql

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    run_sql("0025_feed.sql")
