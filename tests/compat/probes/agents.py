"""Agents and their versions."""

from typing import Any

import anthropic
from bench.support.sdk.sdk_client import MODEL, TOOLSET, SdkClient
from tests.compat.checks import read_pages, require_equal
from tests.compat.registry import different, probe, refused, supported

_CALLER = {"type": "custom", "name": "call_me", "description": "Calls.", "input_schema": {"type": "object"}}
_SERVER = {"type": "url", "name": "m", "url": "https://mcp.example.com/mcp"}


@supported("agents.create")
@supported("agents.create", "model", "name", "description", "system", "tools", "metadata", "execution_identity")
@supported("agents.create", "mcp_servers")
@supported("agents.retrieve")
@supported("agents.retrieve", "agent_id")
@supported("ServiceAccountExecutionIdentityParams")
@supported("Agent", "id", "type", "name", "version", "model", "description", "system", "tools", "metadata")
@supported("Agent", "created_at", "updated_at", "archived_at")
@different("Agent", "execution_identity", note="Always `service_account`.")
@supported("Agent", "mcp_servers")
@different("Agent", "skills", note="Always empty.")
async def a_created_agent_has_the_requested_fields(door: SdkClient) -> None:
    made = await door.call(
        "agents.create",
        name="Coder",
        model=MODEL,
        description="Writes code.",
        system="Be brief.",
        tools=[TOOLSET, _CALLER],
        metadata={"team": "core"},
        execution_identity={"type": "service_account"},
        mcp_servers=[_SERVER],
        skills=[],
        multiagent=None,
    )
    found = await door.call("agents.retrieve", made.id)
    require_equal(found, made)
    require_equal(found.id.split("_")[0], "agent")
    require_equal((found.type, found.name, found.version, found.model.id), ("agent", "Coder", 1, MODEL))
    require_equal((found.description, found.system, found.metadata), ("Writes code.", "Be brief.", {"team": "core"}))
    require_equal([tool.type for tool in found.tools], ["agent_toolset_20260401", "custom"])
    require_equal([server.to_dict() for server in found.mcp_servers], [_SERVER])
    require_equal((found.skills, found.multiagent, found.archived_at), ([], None, None))
    require_equal((found.execution_identity.type, found.created_at), ("service_account", found.updated_at))
    await door.expect_error(anthropic.NotFoundError, "agents.retrieve", "agent_none")


@refused("agents.create", "skills", note="An empty list or null is accepted.")
@refused("agents.update", "skills", note="An empty list or null is accepted.")
@refused("AWSRoleExecutionIdentityParams")
async def unsupported_agent_fields_are_refused(door: SdkClient) -> None:
    agent_id = (await door.agent()).id
    for fields, field in (
        ({"skills": [{"type": "custom", "skill_id": "skill_1"}]}, "skills"),
        ({"execution_identity": {"type": "aws_role", "role_arn": "arn"}}, "execution_identity.type"),
    ):
        refusal = anthropic.BadRequestError
        await door.expect_error(refusal, "agents.create", name="A", model=MODEL, field=field, **fields)
        await door.expect_error(refusal, "agents.update", agent_id, field=field, **fields)


@supported("ModelConfigParams", "id", note="With a provider prefix (`openai:…`) for models of other providers.")
@different("ModelConfigParams", "speed", note="Only `standard`; `fast` is refused.")
@refused("ModelConfigParams", "effort", "inference_geo")
async def a_model_is_a_name_or_an_object(door: SdkClient) -> None:
    agent = await door.agent(model={"id": "openai:gpt-5", "speed": "standard"})
    require_equal((agent.model.id, agent.model.speed), ("openai:gpt-5", "standard"))
    for fields in ({"effort": "high"}, {"effort": {"type": "low"}}, {"inference_geo": "eu"}, {"speed": "fast"}):
        refusal = await door.expect_error(
            anthropic.BadRequestError,
            "agents.create",
            name="A",
            model={"id": MODEL, **fields},
            field=f"model.{next(iter(fields))}",
        )
        require_equal(refusal.type, "invalid_request_error")


@probe
async def names_and_sizes_have_limits(door: SdkClient) -> None:
    for fields, field in (
        ({"name": ""}, "name"),
        ({"name": "n" * 257}, "name"),
        ({"model": ""}, "model"),
        ({"description": "d" * 2049}, "description"),
        ({"system": "s" * 100_001}, "system"),
        ({"metadata": {str(n): "v" for n in range(17)}}, "metadata"),
        ({"metadata": {"k": "v" * 513}}, "metadata.k"),
        ({"extra_body": {"colour": "red"}}, "colour"),
    ):
        given = {"name": "A", "model": MODEL, **fields}
        await door.expect_error(anthropic.BadRequestError, "agents.create", field=field, **given)


@supported("agents.update")
@supported("agents.update", "agent_id", "name", "model", "execution_identity")
@supported("agents.update", "description", "system", note="Null or an empty string clears the field.")
@supported("agents.update", "tools", "mcp_servers", note="Replaces the list; null or an empty list clears it.")
@supported("agents.update", "metadata", note="Merged by key; null removes a key.")
@supported("agents.update", "version", note="An outdated version: 409. Identical content creates no new version.")
@supported("agents.retrieve", "version")
async def an_update_merges_fields_and_creates_a_version(door: SdkClient) -> None:
    agent = await door.agent(description="D", system="S", metadata={"a": "1", "b": "2"})
    second = await door.call("agents.update", agent.id, metadata={"a": None, "c": "3"}, version=1)
    require_equal((second.version, second.metadata), (2, {"b": "2", "c": "3"}))
    require_equal((second.name, second.description, second.system, second.tools), ("probe", "D", "S", agent.tools))
    third = await door.call(
        "agents.update", agent.id, name="N", model="m-2", description="", system=None, tools=[], execution_identity=None
    )
    served = await door.call("agents.update", agent.id, mcp_servers=[_SERVER])
    require_equal([server.name for server in served.mcp_servers], ["m"])
    require_equal((await door.call("agents.update", agent.id, mcp_servers=None)).mcp_servers, [])
    require_equal((third.version, third.name, third.model.id, third.tools), (3, "N", "m-2", []))
    require_equal((third.description, third.system), (None, None))
    require_equal((await door.call("agents.update", agent.id, name="N")).version, 5)
    stale = await door.expect_error(anthropic.ConflictError, "agents.update", agent.id, name="late", version=1)
    require_equal(stale.response.headers["x-should-retry"], "false")
    for fields, field in (({"name": None}, "name"), ({"name": ""}, "name"), ({"model": None}, "model")):
        await door.expect_error(anthropic.BadRequestError, "agents.update", agent.id, field=field, **fields)
    old = await door.call("agents.retrieve", agent.id, version=2)
    require_equal((old.version, old.system, old.created_at), (2, "S", agent.created_at))
    await door.expect_error(anthropic.NotFoundError, "agents.retrieve", agent.id, version=9)
    await door.expect_error(anthropic.BadRequestError, "agents.retrieve", agent.id, version=0, field="version")
    await door.expect_error(anthropic.NotFoundError, "agents.update", "agent_none", name="x")


@supported("agents.versions.list", note="Newest first.")
@supported("agents.versions.list", "agent_id", "limit", "page")
async def versions_are_listed_in_pages(door: SdkClient) -> None:
    agent = await door.agent()
    for number in range(2, 8):
        await door.call("agents.update", agent.id, system=f"S{number}")
    versions = await door.list_all("agents.versions.list", agent.id, limit=3)
    require_equal([row.version for row in versions], [7, 6, 5, 4, 3, 2, 1])
    require_equal([row.system for row in versions], ["S7", "S6", "S5", "S4", "S3", "S2", None])
    pages = await read_pages(door, "agents.versions.list", agent.id, limit=3)
    require_equal([len(page) for page in pages], [3, 3, 1])
    refusal = anthropic.BadRequestError
    await door.expect_error(refusal, "agents.versions.list", agent.id, page="nonsense", field="page")
    await door.expect_error(refusal, "agents.versions.list", agent.id, limit=101, field="limit")
    await door.expect_error(anthropic.NotFoundError, "agents.versions.list", "agent_none")


@supported("agents.list", note="Newest first.")
@supported("agents.list", "limit", note="Default 20, maximum 100.")
@supported("agents.list", "page", "created_at_gte", "created_at_lte", "include_archived")
@supported("agents.archive", note="Permanent; there is no delete. Existing sessions continue.")
@supported("agents.archive", "agent_id")
async def agents_are_listed_in_pages(door: SdkClient) -> None:
    made = [await door.agent() for _ in range(5)]
    ids = [row.id for row in made]
    since = {"created_at_gte": made[0].created_at}

    async def list_created(**fields: Any) -> list[str]:
        """Lists only the agents made here: other probes use the same organisation."""
        return [row.id for row in await door.list_all("agents.list", **since, **fields) if row.id in ids]

    require_equal(await list_created(limit=2), ids[::-1])
    until = {"created_at_lte": made[1].created_at.isoformat()}
    require_equal(await list_created(**until), [ids[1], ids[0]])
    archived = await door.call("agents.archive", ids[0])
    require_equal(archived.archived_at is not None, True)
    require_equal((await door.call("agents.archive", ids[0])).archived_at, archived.archived_at)
    require_equal(await list_created(**until), [ids[1]])
    require_equal(await list_created(include_archived=True, **until), [ids[1], ids[0]])
    for fields, field in (({"limit": 0}, "limit"), ({"limit": 101}, "limit"), ({"page": "x"}, "page")):
        await door.expect_error(anthropic.BadRequestError, "agents.list", field=field, **fields)
    invalid_bound = {"created_at_gte": "yesterday"}
    await door.expect_error(anthropic.BadRequestError, "agents.list", field="created_at[gte]", **invalid_bound)
    await door.expect_error(anthropic.BadRequestError, "agents.update", made[0].id, name="late")
    await door.expect_error(
        anthropic.BadRequestError, "sessions.create", agent=made[0].id, environment_id="e", field="agent"
    )
    await door.expect_error(anthropic.NotFoundError, "agents.archive", "agent_none")
