"""Records which code runs, and which code the schema needs."""

from footplate.store.migrations.script import run_sql

revision = "0064"
down_revision = "0063"


def upgrade() -> None:
    run_sql("0064_running_code.sql")
