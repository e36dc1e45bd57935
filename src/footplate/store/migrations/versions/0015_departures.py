"""Adds the table of deliveries of a session's work, in order. A fork continues from the deliveries before it."""

from footplate.store.migrations.script import run_sql

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    run_sql("0015_departures.sql")
