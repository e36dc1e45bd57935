"""What a session's files were like at each position of its log."""

from footplate.store.migrations.script import run_sql

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    run_sql("0011_snapshots.sql")
