"""Adds forks: sessions whose log and conversation start in the rows of other sessions."""

from footplate.store.migrations.script import run_sql

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    run_sql("0006_forks.sql")
