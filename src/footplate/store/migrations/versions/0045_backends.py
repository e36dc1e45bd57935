"""Workers say which backends they offer, and a session which one its next turn needs."""

from footplate.store.migrations.script import run_sql

revision = "0045"
down_revision = "0039"


def upgrade() -> None:
    run_sql("0045_backends.sql")
