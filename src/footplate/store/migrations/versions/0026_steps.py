"""Steps with names, definitions and an order that can be changed; sessions that can be paused."""

from footplate.store.migrations.script import run_sql

revision = "0026"
down_revision = "0025"


def upgrade() -> None:
    run_sql("0026_steps.sql")
