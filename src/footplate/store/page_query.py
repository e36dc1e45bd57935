"""Builds the SQL query for one page of agents, sessions or other resources.

Its SQL is assembled at run time, because its conditions depend on the filters. It uses keyset
pagination on (created_at, id), so a late page costs as much as the first. Values are always passed as query arguments,
never as part of the SQL text, except for the limit, a number of ours.
"""

from collections.abc import Mapping
from typing import Any, Final

from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.visibility import ViewFilter
from footplate.domain.pagination import Page
from footplate.store.database import SQL

_SELECTS: Final = {
    "agents": "select s.* from agents s",
    "environments": "select s.* from environments s",
    "projects": "select s.* from projects s",
    "files": "select s.* from listed_files s",
    "approvals": "select s.* from (select a.event_id as id, a.*, null::timestamptz as archived_at, e.body, t.title"
    " from approvals a join events e on e.session_id = a.session_id and e.seq = a.seq"
    " join sessions t on t.id = a.session_id where a.closed_at is null) s",
    # Looked up for the rows of the page alone. Rows of a deleted session may still exist, because forks need them.
    "audit": "select s.* from (select a.*, null::timestamptz as archived_at,"
    " (select p.name from principals p where p.id = a.principal) as principal_name,"
    " (select t.title from sessions t where t.id = a.session) as session_title,"
    " (select coalesce(e.body -> 'input', case when e.type = 'project.setup_started' then"
    " json_build_object('command', e.body -> 'command') end) from sessions t join events e on e.session_id = t.id"
    " where t.id = a.session and e.event_id = a.event and e.ref_seq is null) as call_input from audit a) s",
    "members": SQL["member"].partition("\nwhere s.id")[0],
    "teams": "select s.* from (select p.*, p.disabled_at as archived_at, array(select t.member from team_members t"
    " where t.team = p.id order by 1) as member_ids from principals p where p.kind = 'team') s",
    "api_keys": "select s.* from (select k.*, p.name as member_name, k.revoked_at as archived_at"
    " from api_keys k join principals p on p.id = k.principal) s",
    "batches": SQL["batch"].partition("\nwhere s.id")[0],
    "deployments": "select s.* from deployments s",
    "deployment_runs": SQL["deployment_run"].partition("\nwhere s.id")[0],
    "session_templates": "select s.* from session_templates s",
    "triggers": "select s.* from triggers s",
    "trigger_deliveries": "select s.* from (select d.*, null::timestamptz as archived_at from trigger_deliveries d) s",
    "workspaces": "select s.* from workspaces s",
    "webhook_endpoints": "select s.* from (select e.*, null::timestamptz as archived_at from webhook_endpoints e"
    " where e.format <> 'push') s",
    "webhook_deliveries": "select s.* from (select d.*, null::timestamptz as archived_at from webhook_deliveries d) s",
    "sessions": SQL["session"].removesuffix("where s.id = $1 and s.organisation = $2"),
}
_VISIBLE: Final = "(coalesce(v.owner, v.principal) = any({0}) or v.visible_to = any({0}))"
_IN_PROJECTS: Final = "(v.project_ids <> '{{}}' and v.project_ids <@ {0}::text[])"
_AUDIT_CONDITION: Final = (  # changes to triggers are visible with the trigger
    f"(s.session is null or coalesce((select {_VISIBLE} from sessions v where v.id = s.session),"  # noqa: S608
    " not exists (select from hidden_deletions d where d.session_id = s.session)))"
    " and (s.layer is distinct from 'trigger' or exists (select from triggers t where t.id = s.content ->> 'id'"
    " and (t.owner = any({0}) or t.visible_to = any({0}))))"
)
_AUDIENCE_CONDITIONS: Final = {
    "sessions": _VISIBLE.replace("v.", "s."),
    "batches": _VISIBLE.replace("v.", "s."),
    "deployments": "(s.owner = any({0}) or s.visible_to = any({0}))",
    "deployment_runs": "(s.owner = any({0}) or s.visible_to = any({0}))",
    "triggers": "(s.owner = any({0}) or s.visible_to = any({0})) and (s.session_id is null or "
    f"exists (select from sessions v where v.id = s.session_id and {_VISIBLE}))",
    "approvals": f"exists (select from sessions v where v.id = s.session_id and {_VISIBLE})",
    # Entries of a session that was deleted stay visible if all members could see it.
    "audit": _AUDIT_CONDITION,
    "files": "(s.session_id is null or s.owner = any({0}) or s.visible_to = any({0}))",
    # Only administrators see the endpoints of the whole organisation.
    "webhook_endpoints": f"exists (select from sessions v where v.id = s.session_id and {_VISIBLE})",
}
_PROJECT_CONDITIONS: Final = {
    "sessions": _IN_PROJECTS.replace("v.", "s."),
    "approvals": f"exists (select from sessions v where v.id = s.session_id and {_IN_PROJECTS})",
    "audit": f"exists (select from sessions v where v.id = s.session and {_IN_PROJECTS})",
    "projects": "s.id = any({0})",
    "files": f"(s.session_id is null or {_IN_PROJECTS.replace('v.', 's.')})",
}
_FILE_CONDITIONS: Final = {
    "files": "(s.session_id is not null or s.owner = any({0}) or s.visible_to = any({0}))",
}


def build_conditions(
    table: str, principal: Principal, page: Page, filters: Mapping[str, Any]
) -> tuple[list[str], list[Any]]:
    """Returns the conditions of all pages of a list, and their arguments. `$1` is the organisation. `filters`: a value
    for each column, or for each condition that contains `{}`. A tuple: a value for each `{}` of the
    condition, which may have none.
    """
    args: list[Any] = [principal.organisation]
    where = ["s.organisation = $1"]

    def add(condition: str, *values: Any) -> None:
        numbers = []
        for value in values:
            args.append(value)
            numbers.append(f"${len(args)}")
        where.append(condition.format(*numbers))

    view = ViewFilter.of(principal)
    for conditions, visible in (
        (_AUDIENCE_CONDITIONS, view.audiences),
        (_PROJECT_CONDITIONS, view.project_ids),
        (_FILE_CONDITIONS, view.file_audiences),
    ):
        if visible is not None and table in conditions:
            add(conditions[table], visible)
    if not page.include_archived:
        where.append("s.archived_at is null")
    for operator, bound in (
        (">", page.created_gt),
        (">=", page.created_gte),
        ("<", page.created_lt),
        ("<=", page.created_lte),
    ):
        if bound is not None:
            add(f"s.created_at {operator} {{}}", bound)
    for column, value in filters.items():
        if isinstance(value, tuple):
            add(column, *value)
        else:
            equals = f"{column} = any({{}})" if isinstance(value, list) else f"{column} = {{}}"
            add(column if "{}" in column else equals, value)
    return where, args


def build_page_query(table: str, principal: Principal, page: Page, filters: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """`filters`: see `build_conditions`."""
    where, args = build_conditions(table, principal, page, filters)
    # A page before a key is read in reverse order; the caller reverses the rows again.
    key, descending = page.after or page.before, (page.order == "desc") is (page.before is None)
    if key is not None:
        args += key
        where.append(f"(s.created_at, s.id) {'<' if descending else '>'} (${len(args) - 1}, ${len(args)})")
    direction = "desc" if descending else "asc"
    # The limit is part of the text. For a parameter, a cached plan assumes a tenth of all rows, so it would never be
    # used; and planning a list of sessions, over every partition of their turns, takes longer than reading it.
    order = f"order by s.created_at {direction}, s.id {direction} limit {page.limit:d}"
    return f"{_SELECTS[table]} where {' and '.join(where)} {order}", args
