"""Forks: sessions whose log and conversation begin in another's."""

from footplate.store.migrations.script import run_sql

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    run_sql("0006_forks.sql")
