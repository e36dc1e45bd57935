"""People, service accounts and teams; API keys belong to one of them, and can expire."""

from footplate.store.migrations.script import run_sql

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    run_sql("0022_identities.sql")
