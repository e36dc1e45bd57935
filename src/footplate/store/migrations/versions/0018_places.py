"""The place of a project, which its rules belong to."""

import json

from alembic import op  # pyrefly: ignore[implicit-reexport]  # its public name
from sqlalchemy import text

from footplate.domain.json import JsonObject
from footplate.domain.project_rules import merge_rules, place_of
from footplate.store.migrations.script import run_sql

revision = "0018"
down_revision = "0017"

_PROJECTS = """
select id, organisation, path, url, permissions from projects
order by (archived_at is null) desc, archived_at desc, created_at desc
"""
_UPDATE = "update projects set place = :place, permissions = cast(:permissions as jsonb) where id = :id"


def upgrade() -> None:
    """A place has the rules of all projects that were there: none of them gets lost."""
    run_sql("0018_places.sql")
    connection = op.get_bind()
    rows = connection.execute(text(_PROJECTS)).all()
    rules: dict[tuple[str, str], JsonObject] = {}
    for row in rows:
        at = (row.organisation, place_of(row.path, row.url))
        rules[at] = merge_rules(rules[at], row.permissions) if at in rules else row.permissions
    for row in rows:
        place = place_of(row.path, row.url)
        merged = json.dumps(rules[row.organisation, place])
        connection.execute(text(_UPDATE), {"place": place, "permissions": merged, "id": row.id})
    connection.execute(text("alter table projects alter column place set not null"))
