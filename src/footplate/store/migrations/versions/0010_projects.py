"""Adds projects and workspaces, and the projects of a session."""

from footplate.store.migrations.script import run_sql

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    run_sql("0010_projects.sql")
