"""People who sign in through an identity provider, and devices that sign in through a browser."""

from footplate.store.migrations.script import run_sql

revision = "0059"
down_revision = "0057"


def upgrade() -> None:
    run_sql("0059_single_sign_on.sql")
