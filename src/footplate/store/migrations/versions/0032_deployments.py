"""Deployments, which start sessions by a schedule or on request, and their runs."""

from footplate.store.migrations.script import run_sql

revision = "0032"
down_revision = "0030"


def upgrade() -> None:
    run_sql("0032_deployments.sql")
