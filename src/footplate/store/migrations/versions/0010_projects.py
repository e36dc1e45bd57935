"""Projects, workspaces, and which of them a session works on."""

from footplate.store.migrations.script import run_sql

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    run_sql("0010_projects.sql")
