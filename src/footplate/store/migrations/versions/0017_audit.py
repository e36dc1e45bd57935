"""What the gate decided and what people said of it: added to, never changed."""

from footplate.store.migrations.script import run_sql

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    run_sql("0017_audit.sql")
