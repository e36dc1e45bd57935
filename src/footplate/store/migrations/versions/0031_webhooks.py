"""Webhook endpoints, and the deliveries to them."""

from footplate.store.migrations.script import run_sql

revision = "0031"
down_revision = "0030"


def upgrade() -> None:
    run_sql("0031_webhooks.sql")
