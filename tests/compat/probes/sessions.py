"""Sessions: creating, updating, listing, archiving and deleting them."""

from typing import Any

import anthropic
from bench.support.sdk.sdk_client import TOOLSET, SdkClient, event_types, message
from tests.compat.checks import read_pages, require_equal
from tests.compat.registry import different, refused, supported

_BUDGET = {"type": "limit", "max_list_cost": {"amount": "100", "currency": "USD"}}
_ASK = {"type": "custom", "name": "ask", "description": "Asks.", "input_schema": {"type": "object"}}
_SERVER = {"type": "url", "name": "m", "url": "https://mcp.example.com/mcp"}


@supported("sessions.create")
@supported("sessions.create", "agent", "environment_id", "title", "metadata")
@supported("sessions.retrieve")
@supported("sessions.retrieve", "session_id")
@supported("Session", "id", "type", "agent", "environment_id", "status", "title", "metadata")
@supported("Session", "stats", "usage", "created_at", "updated_at", "archived_at")
@supported("Session", "resources")
@different("Session", "vault_ids", "outcome_evaluations", note="Always empty.")
@different("Session", "budget", note="Always null.")
async def a_created_session_has_the_requested_fields(door: SdkClient) -> None:
    agent = await door.agent(system="S")
    made = await door.session(agent.id, title="T", metadata={"a": "1"}, resources=[], vault_ids=[])
    found = await door.call("sessions.retrieve", made.id)
    require_equal((found.id.split("_")[0], found.type, found.status, found.title), ("sesn", "session", "idle", "T"))
    require_equal((found.agent.id, found.agent.version, found.agent.system), (agent.id, 1, "S"))
    require_equal((found.metadata, found.environment_id), ({"a": "1"}, made.environment_id))
    require_equal((found.resources, found.vault_ids, found.outcome_evaluations), ([], [], []))
    require_equal((found.budget, found.deployment_id, found.archived_at), (None, None, None))
    require_equal((found.usage.input_tokens, found.stats.active_seconds), (0, 0))
    await door.expect_error(anthropic.NotFoundError, "sessions.retrieve", "sesn_none")
    await door.expect_error(anthropic.NotFoundError, "sessions.create", agent="agent_none", environment_id="env_none")
    await door.expect_error(anthropic.NotFoundError, "sessions.create", agent=agent.id, environment_id="env_none")


@supported("AgentParams", "id", "version")
@supported("AgentWithOverridesParams", "id", "version", "model", "system", "tools", "mcp_servers")
@refused("AgentWithOverridesParams", "skills", note="An empty list is accepted.")
async def the_agent_by_version_and_with_overrides(door: SdkClient) -> None:
    agent = await door.agent(system="S1")
    await door.call("agents.update", agent.id, system="S2")
    by_id = {"id": agent.id}
    old = await door.session({"type": "agent", **by_id, "version": 1})
    require_equal((old.agent.version, old.agent.system), (1, "S1"))
    new = await door.session({"type": "agent", **by_id})
    require_equal((new.agent.version, new.agent.system), (2, "S2"))
    overrides = {"type": "agent_with_overrides", **by_id, "version": 1, "model": "m-2", "tools": [], "system": None}
    overrides["mcp_servers"] = [_SERVER]
    other = await door.session(overrides)
    require_equal(
        (other.agent.version, other.agent.model.id, other.agent.tools, other.agent.system), (1, "m-2", [], None)
    )
    require_equal([server.to_dict() for server in other.agent.mcp_servers], [_SERVER])
    require_equal((await door.call("agents.retrieve", agent.id)).system, "S2")
    environment = {"environment_id": new.environment_id}
    await door.expect_error(
        anthropic.NotFoundError, "sessions.create", agent={"type": "agent", **by_id, "version": 9}, **environment
    )
    for fields, field in (
        ({"skills": [{"type": "custom", "skill_id": "s"}]}, "agent.skills"),
        ({"mcp_servers": [{"type": "url", "name": "m", "url": "u"}]}, "agent.mcp_servers.0.url"),
        ({"model": None}, "agent.model"),
        ({"name": "other"}, "agent.name"),
    ):
        chosen: Any = {"type": "agent_with_overrides", **by_id, **fields}
        await door.expect_error(anthropic.BadRequestError, "sessions.create", agent=chosen, field=field, **environment)


@refused("sessions.create", "budget")
@refused("sessions.create", "vault_ids", note="An empty list is accepted.")
@refused("sessions.update", "budget", "vault_ids")
async def unsupported_session_fields_are_refused(door: SdkClient) -> None:
    session = await door.session()
    given = {"agent": session.agent.id, "environment_id": session.environment_id}
    refusal = anthropic.BadRequestError
    for fields, field in (
        ({"budget": _BUDGET}, "budget"),
        ({"vault_ids": ["vlt_1"]}, "vault_ids"),
    ):
        await door.expect_error(refusal, "sessions.create", field=field, **{**given, **fields})
    await door.expect_error(refusal, "sessions.update", session.id, budget=_BUDGET, field="budget")
    await door.expect_error(refusal, "sessions.update", session.id, vault_ids=["vlt_1"], field="vault_ids")


@different("sessions.create", "initial_events", note="Only `user.message`; at most 50.")
async def initial_events_start_the_first_turn(door: SdkClient) -> None:
    session = await door.session(initial_events=[message("[[script:probe-hello]]")])
    after: Any = {"extra_headers": {"Last-Event-ID": "0"}}

    async def nothing() -> None:
        return None

    received = await door.watch(session.id, nothing, **after)
    require_equal(event_types(received)[:3], ["user.message", "user.message", "session.status_running"])
    given = {"agent": session.agent.id, "environment_id": session.environment_id}
    outcome = {"type": "user.define_outcome", "description": "d", "rubric": {"type": "text", "content": "c"}}
    for events, field in (([outcome], "initial_events.0.type"), ([message("x")] * 51, "initial_events")):
        await door.expect_error(
            anthropic.BadRequestError, "sessions.create", initial_events=events, field=field, **given
        )


@supported("sessions.update", note="`session.updated` has the changed fields.")
@supported("sessions.update", "session_id")
@supported("sessions.update", "title", note="Null clears the title.")
@supported("sessions.update", "metadata", note="Merged by key; null removes a key.")
@supported("sessions.update", "agent", note="While the session runs: 409.")
@supported("SessionAgentUpdateParam", "tools", "mcp_servers")
async def an_update_is_streamed(door: SdkClient) -> None:
    session = await door.session(title="T", metadata={"a": "1"})

    async def change() -> None:
        changed = await door.call("sessions.update", session.id, metadata={"b": "2", "a": None})
        require_equal((changed.title, changed.metadata), ("T", {"b": "2"}))
        require_equal((await door.call("sessions.update", session.id, title=None)).title, None)
        changed = await door.call("sessions.update", session.id, agent={"tools": [TOOLSET, _ASK]})
        require_equal([tool.type for tool in changed.agent.tools], ["agent_toolset_20260401", "custom"])

    received = await door.watch(session.id, change, until=lambda event: event.agent is not None)
    first, second, third = (event.to_dict() for event in received)
    require_equal((first["metadata"], "title" in first, "agent" in first), ({"b": "2"}, False, False))
    require_equal((second["title"], "metadata" in second), (None, False))
    require_equal(
        ([tool["type"] for tool in third["agent"]["tools"]], "title" in third), ([TOOLSET["type"], "custom"], False)
    )
    require_equal(len((await door.call("agents.retrieve", session.agent.id)).tools), 1)
    await door.call("sessions.update", session.id, title=None)
    require_equal(len(await door.list_all("sessions.events.list", session.id, types=["session.updated"])), 3)
    servers: Any = {"mcp_servers": [{"type": "url", "name": "m", "url": "u"}]}
    refusal = anthropic.BadRequestError
    await door.expect_error(refusal, "sessions.update", session.id, agent=servers, field="agent.mcp_servers.0.url")
    served = await door.call("sessions.update", session.id, agent={"mcp_servers": [_SERVER]})
    require_equal([server.to_dict() for server in served.agent.mcp_servers], [_SERVER])
    await door.expect_error(refusal, "sessions.update", session.id, title="t" * 2001, field="title")
    await door.expect_error(anthropic.NotFoundError, "sessions.update", "sesn_none", title="x")


@supported("sessions.list", note="`prev_page` is the page before.")
@supported("sessions.list", "agent_id", "created_at_gt", "created_at_gte", "created_at_lt", "created_at_lte")
@supported("sessions.list", "agent_version", note="Without `agent_id` it has no effect, as in the reference.")
@supported("sessions.list", "limit", note="Default 20, maximum 100.")
@supported("sessions.list", "order", "page", note="A cursor from another order: 400.")
@supported("sessions.list", "include_archived")
async def sessions_are_listed_in_pages_in_both_orders(door: SdkClient) -> None:
    agent = await door.agent()
    made = [await door.session(agent.id) for _ in range(7)]
    ids, by_agent = [row.id for row in made], {"agent_id": agent.id}
    for order, wanted in (("asc", ids), ("desc", ids[::-1])):
        require_equal(
            [row.id for row in await door.list_all("sessions.list", order=order, limit=3, **by_agent)], wanted
        )
        pages = await read_pages(door, "sessions.list", order=order, limit=3, **by_agent)
        require_equal([[row.id for row in page] for page in pages], [wanted[:3], wanted[3:6], wanted[6:]])
        first = await door.call("sessions.list", order=order, limit=3, **by_agent)
        second = await door.call("sessions.list", order=order, limit=3, page=first.next_page, **by_agent)
        back = await door.call("sessions.list", order=order, limit=3, page=second.prev_page, **by_agent)
        require_equal(([row.id for row in back.data], first.prev_page, back.prev_page), (wanted[:3], None, None))
        turned = {"order": "desc" if order == "asc" else "asc", "page": first.next_page}
        await door.expect_error(anthropic.BadRequestError, "sessions.list", field="page", **turned)
    require_equal([row.id for row in await door.list_all("sessions.list", limit=3, **by_agent)], ids[::-1])
    middle = made[3].created_at
    for bound, wanted in (("gt", ids[4:]), ("gte", ids[3:]), ("lt", ids[:3]), ("lte", ids[:4])):
        bounds = {f"created_at_{bound}": middle}
        require_equal(
            [row.id for row in await door.list_all("sessions.list", order="asc", **bounds, **by_agent)], wanted
        )
    await door.call("agents.update", agent.id, system="S2")
    newer = (await door.session(agent.id)).id
    require_equal([row.id for row in await door.list_all("sessions.list", agent_version=2, **by_agent)], [newer])
    await door.call("sessions.archive", newer)
    require_equal(await door.list_all("sessions.list", agent_version=2, **by_agent), [])
    shown = await door.list_all("sessions.list", agent_version=2, include_archived=True, **by_agent)
    require_equal([row.id for row in shown], [newer])
    for fields, field in (
        ({"limit": 0}, "limit"),
        ({"limit": 101}, "limit"),
        ({"page": "nonsense"}, "page"),
        ({"order": "sideways"}, "order"),
        ({"statuses": ["asleep"]}, "statuses[].0"),
        ({"agent_version": 0}, "agent_version"),
    ):
        await door.expect_error(anthropic.BadRequestError, "sessions.list", field=field, **fields)


@supported("sessions.list", "statuses")
@supported("sessions.archive", note="While it runs: 409. An archived session accepts no events.")
@supported("sessions.archive", "session_id")
@supported("sessions.delete", note="While it runs: 409. Deletes its log, turns and stored responses permanently.")
@supported("sessions.delete", "session_id")
async def a_running_session_is_neither_archived_nor_deleted(door: SdkClient) -> None:
    agent = await door.agent()
    session = await door.session(agent.id)
    await door.watch(
        session.id,
        lambda: door.send_script(session.id, "probe-slow"),
        until=lambda event: event.type == "session.status_running",
    )
    by_agent = {"agent_id": agent.id}
    busy = await door.list_all("sessions.list", statuses=["running", "rescheduling"], **by_agent)
    require_equal([row.id for row in busy], [session.id])
    require_equal(await door.list_all("sessions.list", statuses=["idle"], **by_agent), [])
    for method in ("archive", "delete"):
        refusal = await door.expect_error(anthropic.ConflictError, f"sessions.{method}", session.id)
        require_equal(refusal.response.headers["x-should-retry"], "false")
    await door.expect_error(anthropic.ConflictError, "sessions.update", session.id, agent={"tools": []})
    stop: Any = {"type": "user.interrupt"}
    await door.watch(session.id, lambda: door.call("sessions.events.send", session.id, events=[stop]))
    require_equal([row.id for row in await door.list_all("sessions.list", statuses=["idle"], **by_agent)], [session.id])
    require_equal((await door.call("sessions.archive", session.id)).archived_at is not None, True)
    await door.expect_error(anthropic.BadRequestError, "sessions.events.send", session.id, events=[message("late")])
    gone = await door.call("sessions.delete", session.id)
    require_equal((gone.id, gone.type), (session.id, "session_deleted"))
    for method in ("retrieve", "update", "archive", "delete", "events.list", "events.stream"):
        await door.expect_error(anthropic.NotFoundError, f"sessions.{method}", session.id)
    await door.expect_error(anthropic.NotFoundError, "sessions.events.send", session.id, events=[message("late")])


@refused("sessions.list", "memory_store_id")
async def filters_by_unsupported_resources_are_refused(door: SdkClient) -> None:
    await door.expect_error(anthropic.BadRequestError, "sessions.list", field="memory_store_id", memory_store_id="x")
