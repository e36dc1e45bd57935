"""Notifications by web push: subscriptions of browsers, quiet hours, and the key pair of the server."""

from footplate.store.migrations.script import run_sql

revision = "0063"
down_revision = "0062"


def upgrade() -> None:
    run_sql("0063_push_subscriptions.sql")
