"""Sessions that run in the background, and turns that end by the clock."""

from footplate.store.migrations.script import run_sql

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    run_sql("0008_background.sql")
