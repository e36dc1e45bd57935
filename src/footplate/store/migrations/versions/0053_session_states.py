"""Sessions can be listed and counted by state, owner, project and harness without reading all of them."""

from footplate.store.migrations.script import run_sql

revision = "0053"
down_revision = "0051"


def upgrade() -> None:
    run_sql("0053_session_states.sql")
