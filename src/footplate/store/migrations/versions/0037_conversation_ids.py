"""The harness's own conversation id, in sessions."""

from footplate.store.migrations.script import run_sql

revision = "0037"
down_revision = "0035"


def upgrade() -> None:
    run_sql("0037_conversation_ids.sql")
