"""What left a session, by whom and in which order: a fork goes on from what had left before it."""

from footplate.store.migrations.script import run_sql

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    run_sql("0015_departures.sql")
