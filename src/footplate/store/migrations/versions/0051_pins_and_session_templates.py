"""Members pin sessions, and organisations have templates for new sessions."""

from footplate.store.migrations.script import run_sql

revision = "0051"
down_revision = "0049"


def upgrade() -> None:
    run_sql("0051_pins_and_session_templates.sql")
