"""Starts the runs of deployments. The transaction that creates the session also adds the run.

A time of a schedule that fires again, because a worker died or the engine was restored from an older copy, finds its
run and creates nothing. The lock of the deployment's row orders runs of one deployment.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from footplate.domain import ids
from footplate.domain.errors import FootplateError, Forbidden, InvalidRequest, NotFound, Refused
from footplate.domain.json import JsonObject
from footplate.domain.organisations.limits import OrganisationLimitExceeded
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.roles import Permission, check_permission
from footplate.domain.organisations.visibility import Audience
from footplate.domain.ports.api import AcceptedInputs, Input, UnitOfWork
from footplate.domain.projects.project import ProjectSelection
from footplate.domain.sessions import deployments, events
from footplate.domain.sessions.deployments import (
    CheckContext,
    Deployment,
    DeploymentRun,
    OverlapPolicy,
    RunError,
    RunErrorType,
    SessionTemplate,
)
from footplate.domain.sessions.ending import EndOutcome, SessionEnd
from footplate.domain.sessions.turns import Mode
from footplate.store.database import SQL, Connection, bind
from footplate.store.resources import files, projects
from footplate.store.row_mapping import Row, load_agent

_MAX_DELAY: Final = timedelta(seconds=60)
"""How late a run may start in addition to the catch-up window, because workers are busy."""


class RunRefused(Exception):
    """A run or a delivery creates no session, for a reason that has a type of its own."""

    def __init__(self, kind: RunErrorType, message: str) -> None:
        super().__init__(message)
        self.error = RunError(kind, message)


@dataclass(frozen=True, slots=True)
class StartedRun:
    run: DeploymentRun
    accepted: Sequence[AcceptedInputs] = ()
    """The changes to announce after the commit."""


async def start_run(
    unit: UnitOfWork,
    connection: Connection,
    deployment: Deployment,
    principal: Principal | None,
    *,
    scheduled_at: datetime | None = None,
    check_context: CheckContext,
) -> StartedRun:
    """Creates the session of a run, and records the run. The caller holds the lock of the deployment.

    `principal`: in whose name the session is created. None: the member is disabled. `scheduled_at`: None for a run that
    a client has asked for.
    """
    accepted: Sequence[AcceptedInputs] = ()
    session_id: str | None = None
    error: RunError | None = None
    try:
        async with connection.transaction():
            session_id, accepted = await _create_session(
                unit, connection, deployment, principal, check_context, is_scheduled=scheduled_at is not None
            )
    except (RunRefused, Refused) as refused:
        error = describe_refusal(refused)
    author = deployment.principal_id if principal is None else principal.id
    run = await record_run(
        connection, deployment, author, scheduled_at=scheduled_at, session_id=session_id, error=error
    )
    return StartedRun(run, accepted)


async def record_run(
    connection: Connection,
    deployment: Deployment,
    author: str,
    *,
    scheduled_at: datetime | None,
    session_id: str | None = None,
    error: RunError | None = None,
    skipped: bool = False,
) -> DeploymentRun:
    agent = deployment.definition.template.agent
    row = await connection.fetchrow(
        *bind(
            "insert_run",
            id=ids.new_id(ids.DEPLOYMENT_RUN),
            deployment_id=deployment.id,
            organisation=deployment.organisation,
            agent_id=agent["id"],
            agent_version=agent["version"],
            scheduled_at=scheduled_at,
            principal=author,
            session_id=session_id,
            error=None if error is None else error.dump(),
            skipped=skipped,
        )
    )
    assert row is not None
    if scheduled_at is not None:
        await connection.execute(SQL["record_scheduled_run"], deployment.id, scheduled_at, session_id is not None)
    run = load_run(row)
    if not skipped:
        kind = deployments.RUN_SUCCEEDED if error is None else deployments.RUN_FAILED
        await add_to_feed(connection, deployment.id, kind, _describe_run(deployment, run))
    return run


async def fire(
    unit: UnitOfWork,
    connection: Connection,
    deployment: Deployment,
    principal: Principal | None,
    scheduled_at: datetime,
    *,
    buffered_at: datetime | None,
    check_context: CheckContext,
) -> StartedRun | None:
    """Starts the run of a time of the schedule, if it has none yet. The caller holds the lock of the deployment, which
    is active. None: the run waits for an earlier one.
    """
    if (found := await connection.fetchrow(SQL["run_at"], deployment.id, scheduled_at)) is not None:
        return StartedRun(load_run(found))
    author = deployment.principal_id if principal is None else principal.id
    is_buffered = buffered_at == scheduled_at
    delay, limit = datetime.now(UTC) - scheduled_at, timedelta(seconds=deployment.definition.catch_up_seconds)
    if delay > limit + _MAX_DELAY and not is_buffered:
        late = RunError(
            RunErrorType.REJECTED,
            f"The run could start only {delay.total_seconds():.0f} seconds late, and its catch-up window is "
            f"{limit.total_seconds():.0f} seconds. Start it with `footplate schedules run {deployment.id}`.",
        )
        return StartedRun(await record_run(connection, deployment, author, scheduled_at=scheduled_at, error=late))
    policy = deployment.definition.overlap_policy
    if policy in {OverlapPolicy.SKIP, OverlapPolicy.BUFFER_ONE}:
        busy = await connection.fetchrow(SQL["busy_sessions"], deployment.id)
        if busy is not None and policy is OverlapPolicy.BUFFER_ONE and buffered_at in {None, scheduled_at}:
            await connection.execute(SQL["buffer_run"], deployment.id, scheduled_at)
            return None
        if busy is not None:
            skipped = RunError(
                RunErrorType.REJECTED,
                f"The run was skipped, because session {busy['session_id']!r} of an earlier run has not finished.",
            )
            return StartedRun(
                await record_run(connection, deployment, author, scheduled_at=scheduled_at, error=skipped, skipped=True)
            )
    started = await start_run(
        unit, connection, deployment, principal, scheduled_at=scheduled_at, check_context=check_context
    )
    error = started.run.error
    if error is not None and error.type.pauses_schedule:
        await connection.execute(SQL["pause_deployment"], deployment.id, deployments.pause_after(error))
        await add_to_feed(connection, deployment.id, deployments.PAUSED, {"reason": error.dump()})
    return started


def load_acting_principal(row: Row) -> Principal | None:
    """Returns the principal in whose name a locked deployment runs. None: disabled."""
    if row["acting_id"] is None:
        return None
    teams = frozenset(row["acting_teams"])
    return Principal(row["organisation"], row["acting_id"], row["acting_name"], frozenset(row["acting_roles"]), teams)


def load_run(row: Row) -> DeploymentRun:
    error = row["error"]
    return DeploymentRun(
        id=row["id"],
        deployment_id=row["deployment_id"],
        agent_id=row["agent_id"],
        agent_version=row["agent_version"],
        scheduled_at=row["scheduled_at"],
        session_id=row["session_id"],
        error=None if error is None else RunError(RunErrorType(error["type"]), error["message"]),
        skipped=row["skipped"],
        created_at=row["created_at"],
    )


async def add_to_feed(connection: Connection, deployment_id: str, event_type: str, body: JsonObject) -> None:
    event_id = ids.new_id(ids.EVENT)
    body = {"deployment_id": deployment_id, **body}
    await connection.execute(SQL["add_deployment_to_feed"], deployment_id, event_type, event_id, body)


async def check_environment(connection: Connection, principal: Principal, environment_id: str) -> None:
    row = await connection.fetchrow(SQL["environment"], environment_id, principal.organisation)
    if row is None:
        raise NotFound("environment", environment_id)
    if row["archived_at"] is not None:
        raise InvalidRequest(
            f"environment_id: {environment_id} is archived",
            field="environment_id",
            help_text="Choose another environment.",
        )


async def check_projects(connection: Connection, principal: Principal, template: SessionTemplate) -> None:
    await projects.choose_projects(connection, principal, _selection(template))


def _selection(template: SessionTemplate) -> ProjectSelection:
    return ProjectSelection(template.project_ids, template.workspace_id)


async def _create_session(
    unit: UnitOfWork,
    connection: Connection,
    deployment: Deployment,
    principal: Principal | None,
    check_context: CheckContext,
    *,
    is_scheduled: bool,
) -> tuple[str, Sequence[AcceptedInputs]]:
    """Creates the session with its messages, files and steps. With `cancel_other`, ends those of earlier runs."""
    if principal is None:
        raise RunRefused(
            RunErrorType.UNKNOWN,
            f"The member {deployment.principal_id!r}, in whose name this schedule runs, is disabled. Another member "
            f"can take it over: `footplate schedules resume {deployment.id}`.",
        )
    definition = deployment.definition
    accepted: list[AcceptedInputs] = []
    if is_scheduled and definition.overlap_policy is OverlapPolicy.CANCEL_OTHER:
        end = SessionEnd(
            outcome=EndOutcome.CANCELLED, reason="A newer run of its schedule has started.", ended_by=principal.id
        )
        earlier = [row for row in await connection.fetch(SQL["busy_sessions"], deployment.id) if not row["is_ending"]]
        accepted = [(await unit.end_session(principal, row["session_id"], end))[1] for row in earlier]
    session_id, created = await create_from_template(
        unit,
        connection,
        principal,
        definition.template,
        environment_id=definition.environment_id,
        title=definition.name,
        metadata=definition.metadata,
        audience=definition.audience,
        check_context=check_context,
        deployment_id=deployment.id,
    )
    return session_id, [*accepted, created]


async def create_from_template(
    unit: UnitOfWork,
    connection: Connection,
    principal: Principal,
    template: SessionTemplate,
    *,
    environment_id: str,
    title: str,
    metadata: Mapping[str, str],
    audience: Audience,
    check_context: CheckContext,
    deployment_id: str | None = None,
) -> tuple[str, AcceptedInputs]:
    """Creates a session with its messages, files and steps, after the checks of a session that a client creates."""
    await _check_template(connection, principal, template, environment_id, check_context)
    session, created = await unit.create_session(
        principal,
        agent=template.agent,
        environment_id=environment_id,
        title=title,
        metadata={**metadata},
        context=template.context,
        inputs=[Input(type=events.USER_MESSAGE, body=body) for body in template.messages],
        mode=Mode.BACKGROUND,
        selection=_selection(template),
        permissions=template.permissions,
        audience=audience,
        ends_when_done=template.ends_when_done,
        deployment_id=deployment_id,
    )
    if template.resources:
        now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        copied = [
            {**one, "id": ids.new_id(ids.RESOURCE), "created_at": now, "updated_at": now} for one in template.resources
        ]
        await unit.change_resources(principal, session.id, lambda _: copied)
    if template.steps:
        _, added = await unit.add_steps(principal, session.id, template.steps, before=None)
        positions = [*created.positions, *added.positions]
        created = replace(created, positions=positions, wake=created.wake or added.wake)
    return session.id, replace(created, ends_when_idle=True)


async def _check_template(
    connection: Connection,
    principal: Principal,
    template: SessionTemplate,
    environment_id: str,
    check_context: CheckContext,
) -> None:
    check_permission(principal, Permission.OPERATE)
    await _check_agent(connection, principal, str(template.agent["id"]))
    await _check_environment(connection, principal, environment_id)
    await check_files_of(connection, principal, template)
    check_context(template.context)


async def check_files_of(connection: Connection, principal: Principal, template: SessionTemplate) -> None:
    bodies: list[JsonObject] = [*template.messages]
    bodies.extend({"content": [*content]} for step, _ in template.steps for content in step.contents)
    await _check_files(connection, principal, bodies, template.resources)


async def _check_agent(connection: Connection, principal: Principal, agent_id: str) -> None:
    row = await connection.fetchrow(SQL["agent"], agent_id, principal.organisation)
    if row is None or load_agent(row).archived_at is not None:
        raise RunRefused(
            RunErrorType.AGENT_ARCHIVED,
            f"The agent {agent_id!r} is archived. Choose another agent.",
        )


async def _check_environment(connection: Connection, principal: Principal, environment_id: str) -> None:
    try:
        await check_environment(connection, principal, environment_id)
    except NotFound as error:
        raise RunRefused(RunErrorType.ENVIRONMENT_NOT_FOUND, error.advice) from error
    except InvalidRequest as error:
        raise RunRefused(RunErrorType.ENVIRONMENT_ARCHIVED, error.advice) from error


async def _check_files(
    connection: Connection, principal: Principal, bodies: Sequence[JsonObject], resources: Sequence[JsonObject]
) -> None:
    wanted = {*(str(one["file_id"]) for one in resources), *(one for body in bodies for one in _file_ids(body))}
    if not wanted:
        return
    rows = await connection.fetch(SQL["files_of"], [*wanted], principal.organisation, *files.view_arguments(principal))
    for file_id in sorted(wanted - {row["id"] for row in rows}):
        raise RunRefused(RunErrorType.FILE_NOT_FOUND, NotFound("file", file_id).advice)


def _file_ids(body: JsonObject) -> list[str]:
    content = body.get("content")
    sources = [one.get("source") for one in content if isinstance(one, dict)] if isinstance(content, list) else []
    return [str(one["file_id"]) for one in sources if isinstance(one, dict) and one.get("type") == "file"]


def describe_refusal(error: RunRefused | FootplateError) -> RunError:
    if isinstance(error, RunRefused):
        return error.error
    if isinstance(error, OrganisationLimitExceeded):
        return RunError(RunErrorType.LIMIT_REACHED, error.advice)
    if isinstance(error, NotFound):
        return RunError(RunErrorType.RESOURCE_NOT_FOUND, error.advice)
    return RunError(RunErrorType.UNKNOWN if isinstance(error, Forbidden) else RunErrorType.REJECTED, error.advice)


def _describe_run(deployment: Deployment, run: DeploymentRun) -> JsonObject:
    return {
        "deployment_name": deployment.definition.name,
        "deployment_run_id": run.id,
        **({} if run.session_id is None else {"session_id": run.session_id}),
        "error": None if run.error is None else run.error.dump(),
        "scheduled_at": None if run.scheduled_at is None else run.scheduled_at.isoformat().replace("+00:00", "Z"),
    }
