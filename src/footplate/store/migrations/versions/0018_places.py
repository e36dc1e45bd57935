"""The place of a project, which its rules belong to."""

from alembic import op
from sqlalchemy import text

from footplate.domain.project_rules import place_of
from footplate.store.migrations.script import run_sql

revision = "0018"
down_revision = "0017"

_SHARE_RULES = """
update projects p set permissions = r.permissions
from (
    select distinct on (organisation, place) organisation, place, permissions from projects
    where jsonb_path_exists(permissions, '$.*[*]')
    order by organisation, place, (archived_at is null) desc, archived_at desc, created_at desc
) r
where r.organisation = p.organisation and r.place = p.place and p.permissions <> r.permissions
"""
"""A place has the rules of its project, or of the one that was archived last with rules."""


def upgrade() -> None:
    run_sql("0018_places.sql")
    connection = op.get_bind()
    for row in connection.execute(text("select id, path, url from projects")).all():
        place = place_of(row.path, row.url)
        connection.execute(text("update projects set place = :place where id = :id"), {"place": place, "id": row.id})
    connection.execute(text(_SHARE_RULES))
    connection.execute(text("alter table projects alter column place set not null"))
