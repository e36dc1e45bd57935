"""A session keeps its environment's configuration; the cell has a name."""

from footplate.store.migrations.script import run_sql

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    run_sql("0005_environments.sql")
