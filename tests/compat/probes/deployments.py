"""Deployments and their runs: schedules that start sessions."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import anthropic
from bench.support.sdk.sdk_client import SdkClient, message
from tests.compat.checks import read_pages, require_equal
from tests.compat.registry import different, refused, supported

_YEARLY: Final = {"type": "cron", "expression": "30 9 1 1 *", "timezone": "Europe/Berlin"}
_ONLY_MESSAGES: Final = "Only `user.message`. May be empty if Footplate's field `steps` is not."
_IN_YOUR_NAME: Final = "The schedule then runs in the name of the caller."


async def _create(door: SdkClient, **fields: Any) -> Any:
    agent, environment = await door.agent(), await door.environment()
    given = {"name": "nightly", "agent": agent.id, "environment_id": environment.id, "initial_events": [message("Hi")]}
    return await door.call("deployments.create", **{**given, **fields})


@supported("deployments.create", note="Each session starts in background mode, with the name as its title.")
@supported("deployments.create", "name", "environment_id", "description", "metadata", "schedule")
@supported("deployments.create", "agent", note="Also with overrides.")
@different("deployments.create", "initial_events", note=_ONLY_MESSAGES)
@different("deployments.create", "resources", note="Only files, at most 100.")
@refused("deployments.create", "budget")
@refused("deployments.create", "vault_ids", note="An empty list is accepted.")
@supported("deployments.retrieve")
@supported("deployments.retrieve", "deployment_id")
@supported("ScheduleParams", "expression", note="Also with names of months and days of the week.")
@supported("ScheduleParams", "timezone")
@supported("Deployment", "id", "type", "name", "description", "agent", "environment_id", "initial_events", "metadata")
@supported("Deployment", "resources", "status", "paused_reason", "created_at", "updated_at", "archived_at")
@supported("Deployment", "schedule", note="There is no jitter.")
@different("Deployment", "vault_ids", note="Always empty.")
@different("Deployment", "budget", note="Always absent.")
async def a_created_deployment_has_the_requested_fields(door: SdkClient) -> None:
    made = await _create(door, schedule=_YEARLY, description="D", metadata={"a": "1"}, resources=[], vault_ids=[])
    found = await door.call("deployments.retrieve", made.id)
    require_equal(found, made)
    require_equal((found.id.split("_")[0], found.type, found.name), ("depl", "deployment", "nightly"))
    require_equal((found.agent.type, found.agent.version), ("agent", 1))
    require_equal((found.description, found.metadata, found.archived_at), ("D", {"a": "1"}, None))
    require_equal((found.status, found.paused_reason, found.resources, found.vault_ids), ("active", None, [], []))
    require_equal([event.to_dict() for event in found.initial_events], [message("Hi")])
    require_equal((found.schedule.expression, found.schedule.timezone), ("30 9 1 1 *", "Europe/Berlin"))
    times = found.schedule.upcoming_runs_at
    require_equal(len(times), 5)
    require_equal({(at.month, at.day, at.hour, at.minute) for at in times}, {(1, 1, 8, 30)})
    require_equal(found.schedule.last_run_at, None)
    bare = await _create(door)
    require_equal((bare.schedule, bare.description, bare.metadata), (None, None, {}))
    for change, field in (
        ({"initial_events": []}, "initial_events"),
        ({"schedule": {**_YEARLY, "expression": "@daily"}}, "schedule.expression"),
        ({"schedule": {**_YEARLY, "timezone": "Mars"}}, "schedule.timezone"),
        ({"budget": {"type": "limit", "max_list_cost": {"amount": "1", "currency": "USD"}}}, "budget"),
        ({"vault_ids": ["vlt_1"]}, "vault_ids"),
        ({"name": ""}, "name"),
    ):
        fields = {"name": "n", "agent": made.agent.id, "environment_id": made.environment_id}
        given = {**fields, "initial_events": [message("Hi")], **change}
        await door.expect_error(anthropic.BadRequestError, "deployments.create", field=field, **given)
    await door.expect_error(anthropic.NotFoundError, "deployments.retrieve", "depl_none")


@supported("deployments.update", note=_IN_YOUR_NAME)
@supported("deployments.update", "deployment_id", "name", "environment_id", "description", "metadata", "schedule")
@supported("deployments.update", "agent", note="Also with overrides.")
@different("deployments.update", "initial_events", note=_ONLY_MESSAGES)
@different("deployments.update", "resources", note="Only files, at most 100.")
@refused("deployments.update", "budget")
@refused("deployments.update", "vault_ids", note="An empty list is accepted.")
@supported("deployments.pause")
@supported("deployments.pause", "deployment_id")
@supported("deployments.unpause", note=_IN_YOUR_NAME)
@supported("deployments.unpause", "deployment_id")
@supported("deployments.archive")
@supported("deployments.archive", "deployment_id")
async def a_deployment_is_updated_paused_and_archived(door: SdkClient) -> None:
    made = await _create(door, metadata={"a": "1", "b": "2"}, description="D")
    changed = await door.call(
        "deployments.update",
        made.id,
        name="weekly",
        metadata={"a": None, "c": "3"},
        description=None,
        schedule=_YEARLY,
        initial_events=[message("Other")],
    )
    require_equal((changed.name, changed.metadata, changed.description), ("weekly", {"b": "2", "c": "3"}, None))
    require_equal(len(changed.schedule.upcoming_runs_at), 5)
    require_equal([event.to_dict() for event in changed.initial_events], [message("Other")])
    paused = await door.call("deployments.pause", made.id)
    require_equal((paused.status, paused.paused_reason.type), ("paused", "manual"))
    require_equal(len(paused.schedule.upcoming_runs_at), 5)
    resumed = await door.call("deployments.unpause", made.id)
    require_equal((resumed.status, resumed.paused_reason), ("active", None))
    cleared = await door.call("deployments.update", made.id, schedule=None)
    require_equal((cleared.schedule, cleared.initial_events), (None, changed.initial_events))
    archived = await door.call("deployments.archive", made.id)
    require_equal((archived.archived_at is not None, archived.status), (True, "active"))
    await door.expect_error(anthropic.BadRequestError, "deployments.unpause", made.id)
    await door.expect_error(anthropic.BadRequestError, "deployments.update", made.id, budget={}, field="budget")
    await door.expect_error(
        anthropic.BadRequestError, "deployments.update", made.id, vault_ids=["vlt_1"], field="vault_ids"
    )


@supported("deployments.list", note="Newest first.")
@supported("deployments.list", "agent_id", "created_at_gte", "created_at_lte", "include_archived", "page", "status")
@supported("deployments.list", "limit", note="Default 20, maximum 100.")
async def deployments_are_listed_in_pages(door: SdkClient) -> None:
    first = await _create(door)
    made = [first.id, *[(await _create(door, agent=first.agent.id)).id for _ in range(2)]]
    pages = await read_pages(door, "deployments.list", limit=2, agent_id=first.agent.id)
    require_equal([row.id for page in pages for row in page], made[::-1])
    await door.call("deployments.pause", made[1])
    await door.call("deployments.archive", made[2])
    for fields, expected in (
        ({}, made[1::-1]),
        ({"include_archived": True}, made[::-1]),
        ({"status": "paused"}, [made[1]]),
        ({"status": "active"}, [made[0]]),
        ({"created_at_gte": datetime.now(UTC) + timedelta(hours=1)}, []),
        ({"created_at_lte": first.created_at}, [made[0]]),
    ):
        rows = await door.list_all("deployments.list", agent_id=first.agent.id, **fields)
        require_equal([row.id for row in rows], expected)
    both: Any = {"status": "active", "include_archived": True}
    await door.expect_error(anthropic.BadRequestError, "deployments.list", field="include_archived", **both)


@supported("sessions.list", "deployment_id")
@supported("Session", "deployment_id")
@supported("deployments.run", note="In the name of the caller, also while the schedule is paused.")
@supported("deployments.run", "deployment_id")
@supported("deployment_runs.retrieve")
@supported("deployment_runs.retrieve", "deployment_run_id")
@supported("deployment_runs.list", note="Newest first.")
@supported("deployment_runs.list", "created_at_gt", "created_at_gte", "created_at_lt", "created_at_lte", "page")
@supported("deployment_runs.list", "deployment_id", "has_error", "trigger_type")
@supported("deployment_runs.list", "limit", note="Default 20, maximum 1,000.")
@supported("DeploymentRun", "id", "type", "deployment_id", "agent", "session_id", "trigger_context", "created_at")
@supported("DeploymentRun", "error", note="A disabled member, or one without the role, is an `unknown_error`.")
async def a_run_creates_a_session_or_has_an_error(door: SdkClient) -> None:
    made = await _create(door)
    run = await door.call("deployments.run", made.id)
    require_equal((run.id.split("_")[0], run.type, run.deployment_id), ("drun", "deployment_run", made.id))
    require_equal((run.agent, run.error, run.trigger_context.type), (made.agent, None, "manual"))
    require_equal(await door.call("deployment_runs.retrieve", run.id), run)
    session = await door.call("sessions.retrieve", run.session_id)
    require_equal((session.deployment_id, session.title), (made.id, "nightly"))
    listed = await door.list_all("sessions.list", deployment_id=made.id)
    require_equal([row.id for row in listed], [run.session_id])
    await door.call("environments.archive", made.environment_id)
    failed = await door.call("deployments.run", made.id)
    require_equal((failed.session_id, failed.error.type), (None, "environment_archived_error"))
    require_equal((await door.call("deployments.retrieve", made.id)).status, "active")
    pages = await read_pages(door, "deployment_runs.list", deployment_id=made.id, limit=1)
    require_equal([row.id for page in pages for row in page], [failed.id, run.id])
    for fields, expected in (
        ({"has_error": True}, [failed.id]),
        ({"has_error": False}, [run.id]),
        ({"trigger_type": "schedule"}, []),
        ({"trigger_type": "manual"}, [failed.id, run.id]),
        ({"created_at_gt": run.created_at}, [failed.id]),
        ({"created_at_gte": run.created_at}, [failed.id, run.id]),
        ({"created_at_lt": failed.created_at}, [run.id]),
        ({"created_at_lte": run.created_at}, [run.id]),
    ):
        rows = await door.list_all("deployment_runs.list", deployment_id=made.id, **fields)
        require_equal([row.id for row in rows], expected)
    require_equal(await door.list_all("deployment_runs.list", deployment_id="depl_none"), [])
    await door.expect_error(anthropic.BadRequestError, "deployment_runs.list", page="x", field="page")
    await door.expect_error(anthropic.NotFoundError, "deployment_runs.retrieve", "drun_none")
