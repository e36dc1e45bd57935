"""Reads past tool calls and the rules of their sessions, so that the calls can be evaluated against proposed rules."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from footplate.domain.json import Json, JsonObject
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.visibility import ViewFilter
from footplate.domain.policy.permissions import Layer, PermissionOutcome
from footplate.domain.policy.policy_replay import CallFilter, SessionRules, StoredCall
from footplate.domain.sessions.events import SETUP_STARTED, setup_input
from footplate.store.database import Database
from footplate.store.object_store import Objects
from footplate.store.row_mapping import Row


async def load_calls(
    database: Database,
    objects: Objects,
    principal: Principal,
    where: CallFilter,
    *,
    limit: int,
    after: tuple[datetime, str] | None,
) -> list[StoredCall]:
    view, (after_time, after_id) = ViewFilter.of(principal), after or (None, None)
    rows = await database.fetch(
        "calls",
        organisation=principal.organisation,
        session_id=where.session_id,
        project_id=where.project_id,
        since=where.since,
        until=where.until,
        after_time=after_time,
        after_id=after_id,
        limit=limit,
        audiences=view.audiences,
        project_ids=view.project_ids,
    )
    return [_build_call(row, await _load_body(row, objects)) for row in rows]


async def _load_body(row: Row, objects: Objects) -> JsonObject | None:
    if row["object_key"] is None:
        body: JsonObject | None = row["body"]
        return body
    whole = await objects.load_body(row["object_key"])
    return whole if isinstance(whole, dict) else None


def _build_call(row: Row, body: JsonObject | None) -> StoredCall:
    is_setup = body is not None and row["type"] == SETUP_STARTED
    server, name = (None, row["tool"]) if is_setup else _server_and_tool(row["tool"], body)
    call_input: Json = None
    if body is not None:
        call_input = setup_input(body) if is_setup else body.get("input")
    return StoredCall(
        id=row["id"],
        created_at=row["created_at"],
        session_id=row["session"],
        turn_id=row["turn"],
        event_id=row["event"],
        original_outcome=PermissionOutcome(row["outcome"]),
        name=name,
        server=server,
        input=call_input if isinstance(call_input, dict) else None,
    )


def _server_and_tool(tool: str, body: JsonObject | None) -> tuple[str | None, str]:
    """Returns server and tool name. The audit trail has them as `server/tool`, the call itself as two fields."""
    if body is None:
        server, slash, name = tool.rpartition("/")
        return (server, name) if slash else (None, name)
    server_s = body.get("mcp_server_name")
    return (None if server_s is None else str(server_s)), str(body.get("name"))


async def load_session_rules(
    database: Database, principal: Principal, session_ids: Sequence[str]
) -> Mapping[str, SessionRules]:
    rows = await database.fetch("rules_of_sessions", [*session_ids], principal.organisation)
    return {
        row["id"]: SessionRules(
            agent=row["agent"],
            layers=[
                (Layer.ORGANISATION, row["organisation"] or {}),
                *((Layer.PROJECT, permissions) for permissions in row["projects"]),
                (Layer.SESSION, row["session"]),
            ],
        )
        for row in rows
    }


async def load_new_session_rules(
    database: Database, principal: Principal, agent: JsonObject, project_ids: Sequence[str]
) -> SessionRules:
    row = await database.fetchrow("rules_of_projects", principal.organisation, [*project_ids])
    assert row is not None
    projects = [(Layer.PROJECT, permissions) for permissions in row["projects"]]
    return SessionRules(agent=agent, layers=[(Layer.ORGANISATION, row["organisation"] or {}), *projects])
