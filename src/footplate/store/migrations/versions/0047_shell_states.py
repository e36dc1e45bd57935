"""The state of a session's persistent shell is stored, so that a new shell continues from it."""

from footplate.store.migrations.script import run_sql

revision = "0047"
down_revision = "0045"


def upgrade() -> None:
    run_sql("0047_shell_states.sql")
