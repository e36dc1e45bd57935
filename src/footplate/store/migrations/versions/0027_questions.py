"""Questions that wait for a person's reply."""

from footplate.store.migrations.script import run_sql

revision = "0027"
down_revision = "0026"


def upgrade() -> None:
    run_sql("0027_questions.sql")
