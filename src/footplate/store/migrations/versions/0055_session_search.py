"""Sessions can be searched by the words of their titles and messages and of the paths of files that they wrote."""

from footplate.store.migrations.script import run_sql

revision = "0055"
down_revision = "0053"


def upgrade() -> None:
    run_sql("0055_session_search.sql")
