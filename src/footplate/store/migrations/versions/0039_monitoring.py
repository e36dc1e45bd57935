"""Usage is totalled by hour and by tool too, with project, parameters and status; the last interaction has a time."""

from footplate.store.migrations.script import run_sql

revision = "0039"
down_revision = "0037"


def upgrade() -> None:
    run_sql("0039_monitoring.sql")
