"""Updates of a session's head and of its steps touch no index, so that PostgreSQL makes them in place."""

from footplate.store.migrations.script import run_sql

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    run_sql("0020_updates_in_place.sql")
