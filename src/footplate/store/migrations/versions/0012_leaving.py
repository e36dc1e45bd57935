"""Who writes where two would meet, and which commits an agent made."""

from footplate.store.migrations.script import run_sql

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    run_sql("0012_leaving.sql")
