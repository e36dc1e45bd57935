"""The inbox: failed turns and merge conflicts that need a person, assignments, and comments on lines of diffs."""

from footplate.store.migrations.script import run_sql

revision = "0049"
down_revision = "0047"


def upgrade() -> None:
    run_sql("0049_inbox_and_comments.sql")
