"""Sessions that end, and groups of sessions: the children of a session, and batches."""

from footplate.store.migrations.script import run_sql

revision = "0029"
down_revision = "0028"


def upgrade() -> None:
    run_sql("0029_endings_and_groups.sql")
