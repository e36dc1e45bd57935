"""Creates, reads, retries and cancels batches. All jobs of a batch are inserted with a few statements, in one
transaction.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import orjson

from footplate.domain import ids
from footplate.domain.errors import Conflict, InvalidRequest, NotFound
from footplate.domain.json import JsonObject, as_objects, clean_object
from footplate.domain.organisations.limits import LimitName
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.visibility import Audience, ViewFilter
from footplate.domain.projects.project import ProjectSelection
from footplate.domain.sessions import events
from footplate.domain.sessions.batches import (
    Batch,
    BatchCounts,
    BatchDefinition,
    BatchPriority,
    BatchUnit,
    CreatedBatch,
    Job,
    JobDefinition,
    JobState,
)
from footplate.domain.sessions.events import Event
from footplate.domain.sessions.steps import PauseReason, StepDefinition
from footplate.domain.sessions.turns import Mode
from footplate.store.database import SQL, Connection, Database, bind
from footplate.store.log.inputs import json_text
from footplate.store.log.step_changes import StepUnitOfWork, created_event
from footplate.store.object_store import Objects
from footplate.store.resources import members, projects
from footplate.store.row_mapping import Row, load_usage
from footplate.telemetry import traces


@dataclass(slots=True)
class _Columns:
    """Values for `unnest`: a list for each column, by the name of its parameter."""

    values: dict[str, list[object]] = field(default_factory=dict)

    def add(self, **row: object) -> None:
        for name, value in row.items():
            self.values.setdefault(name, []).append(value)


class BatchUnitOfWork(StepUnitOfWork, BatchUnit):
    """The methods of a unit of work that change batches."""

    _connection: Connection
    _objects: Objects

    async def create_batch(
        self, principal: Principal, definition: BatchDefinition, *, retry_of: str | None = None
    ) -> CreatedBatch:
        jobs = definition.jobs
        await self.check_limit(principal, LimitName.SESSIONS, adding=len(jobs))
        adding = sum(len(job.steps) or 1 for job in jobs)
        await self.check_limit(principal, LimitName.QUEUED_STEPS, adding=adding)
        await members.check_audience(self._connection, principal, definition.audience)
        await self._check_environments(principal, jobs)
        started = min(len(jobs), definition.max_running or len(jobs))
        batch_id = ids.new_id(ids.BATCH)
        await self._connection.execute(
            *bind(
                "insert_batch",
                id=batch_id,
                organisation=principal.organisation,
                name=definition.name,
                principal=principal.id,
                visible_to=definition.audience.dump(),
                max_running=definition.max_running,
                definition={"priority": definition.priority.value, "retry_of": retry_of},
                total=len(jobs),
                started=started,
            )
        )
        session_ids = await self._insert_jobs(principal, batch_id, definition, started)
        batch = await load_batch(self._connection, principal, batch_id)
        return CreatedBatch(batch=batch, session_ids=session_ids[:started])

    async def retry_batch(
        self,
        principal: Principal,
        batch_id: str,
        states: Sequence[JobState],
        *,
        check_context: Callable[[JsonObject], None] | None = None,
    ) -> CreatedBatch:
        old = await load_batch(self._connection, principal, batch_id)
        rows = await self._connection.fetch(
            SQL["jobs_to_retry"], batch_id, list(states), ViewFilter.of(principal).audiences
        )
        if not rows:
            raise Conflict(
                f"Batch {batch_id!r} has no job that has {' or '.join(states)}.",
                help_text="Look at its jobs with `footplate batch show`, and wait until they have ended.",
            )
        if check_context is not None:
            for row in rows:
                check_context(row["context"])
        session_ids = [row["id"] for row in rows]
        inputs = await self._load_first_inputs(session_ids)
        granted = await self._load_granted_rules(session_ids)
        definition = BatchDefinition(
            jobs=[_repeat_job(row, inputs.get(row["id"]), granted.get(row["id"], set())) for row in rows],
            name=old.name,
            priority=old.priority,
            max_running=old.max_running,
            audience=old.audience,
        )
        return await self.create_batch(principal, definition, retry_of=batch_id)

    async def cancel_batch(self, principal: Principal, batch_id: str) -> Batch:
        await load_batch(self._connection, principal, batch_id)
        await self._connection.execute(SQL["cancel_batch"], batch_id, principal.organisation)
        return await load_batch(self._connection, principal, batch_id)

    async def _check_environments(self, principal: Principal, jobs: Sequence[JobDefinition]) -> None:
        wanted = list(dict.fromkeys(job.environment_id for job in jobs))
        rows = await self._connection.fetch(SQL["environments_of"], wanted, principal.organisation)
        is_archived = {row["id"]: row["archived_at"] is not None for row in rows}
        for number, job in enumerate(jobs):
            if job.environment_id not in is_archived:
                raise NotFound("environment", job.environment_id)
            if is_archived[job.environment_id]:
                raise InvalidRequest(
                    f"requests.{number}.environment_id: {job.environment_id} is archived",
                    field=f"requests.{number}.environment_id",
                    help_text="Choose another environment.",
                )

    async def _insert_jobs(
        self, principal: Principal, batch_id: str, definition: BatchDefinition, started: int
    ) -> Sequence[str]:
        organisation = principal.organisation
        agents: dict[str, int] = {}
        project_ids: dict[tuple[tuple[str, ...], str | None], Sequence[str]] = {}
        jobs, new_events, new_steps = _Columns(), _Columns(), _Columns()
        for job in definition.jobs:
            chosen = (*job.project_ids,), job.workspace_id
            if chosen not in project_ids:
                selection = ProjectSelection(*chosen)
                project_ids[chosen] = await projects.choose_projects(self._connection, principal, selection)
            session_id = ids.new_id(ids.SESSION)
            inputs = _first_inputs(job)
            agent = json_text(clean_object(job.agent))
            jobs.add(
                ids=session_id,
                custom_ids=job.custom_id,
                agent_numbers=agents.setdefault(agent, len(agents)),
                environment_ids=job.environment_id,
                titles=job.title,
                metadata=json_text({**job.metadata}),
                contexts=json_text(clean_object(job.context)),
                project_ids=orjson.dumps([*project_ids[chosen]]).decode(),
                workspace_ids=job.workspace_id,
                permissions=json_text(job.permissions),
                seqs=len(inputs),
            )
            for seq, (event, step, overrides) in enumerate(inputs, 1):
                body, key = await self._objects.fit_body(organisation, session_id, event.body)
                new_events.add(
                    session_ids=session_id,
                    seqs=seq,
                    event_ids=event.id,
                    types=event.type,
                    bodies=body,
                    object_keys=key,
                )
                new_steps.add(
                    session_ids=session_id,
                    seqs=seq,
                    event_ids=event.id,
                    kinds="prompt" if step is None else step.kind.value,
                    overrides=json_text(overrides),
                    names=None if step is None else step.name,
                    definitions=None if step is None else json_text(clean_object(step.dump())),
                )
        added = await self._connection.fetchval(
            *bind(
                "insert_jobs",
                batch_id=batch_id,
                organisation=organisation,
                principal=principal.id,
                mode=Mode.BACKGROUND,
                visible_to=definition.audience.dump(),
                priority=definition.priority.engine_priority,
                pause_reason=PauseReason.GROUP,
                agents=list(agents),
                started=started,
                **jobs.values,
            )
        )
        if added != len(definition.jobs):
            raise Conflict(
                "An environment of the batch was archived at the same time.", help_text="Choose another environment."
            )
        await self._connection.execute(
            *bind("insert_job_events", organisation=organisation, principal=principal.id, **new_events.values)
        )
        traceparent = traces.current_traceparent()
        await self._connection.execute(
            *bind("insert_job_steps", organisation=organisation, traceparent=traceparent, **new_steps.values)
        )
        return [str(session_id) for session_id in jobs.values["ids"]]

    async def _load_first_inputs(self, session_ids: Sequence[str]) -> Mapping[str, list[tuple[Row, JsonObject]]]:
        """Returns the rows of the sessions' first inputs with their bodies, by session."""
        found: dict[str, list[tuple[Row, JsonObject]]] = {}
        for row in await self._connection.fetch(SQL["first_inputs"], list(session_ids)):
            body = await self._objects.load_body(row["object_key"]) if row["object_key"] else row["body"]
            found.setdefault(row["session_id"], []).append((row, body))
        return found

    async def _load_granted_rules(self, session_ids: Sequence[str]) -> Mapping[str, set[str]]:
        """Returns the rules that people added to each session when they approved a call."""
        found: dict[str, set[str]] = {}
        for row in await self._connection.fetch(SQL["granted_rules"], list(session_ids)):
            body = await self._objects.load_body(row["object_key"]) if row["object_key"] else row["body"]
            found.setdefault(row["session_id"], set()).add(str(body.get("session_rule")))
        return found


def _first_inputs(job: JobDefinition) -> list[tuple[Event, StepDefinition | None, JsonObject]]:
    """Returns the events that create the steps of a job's queue, with their definitions and overrides."""
    if job.steps:
        return [(created_event(step, None), step, overrides) for step, overrides in job.steps]
    return [(Event(events.USER_MESSAGE, {"content": [*job.content]}), None, {})]


def _repeat_job(row: Row, inputs: Sequence[tuple[Row, JsonObject]] | None, granted: set[str]) -> JobDefinition:
    """Returns the job as it was requested: without the rules that people granted to its session."""
    if inputs is None:
        raise Conflict(
            f"Job {row['group_name']!r} cannot be repeated, because its log was archived.",
            help_text="Create a batch with its request.",
        )
    permissions = {**row["permissions"]}
    if "allow" in permissions:
        permissions["allow"] = [rule for rule in permissions["allow"] if rule not in granted]
    is_message = inputs[0][0]["definition"] is None
    return JobDefinition(
        custom_id=row["group_name"],
        agent=row["agent"],
        environment_id=row["environment_id"],
        content=as_objects(inputs[0][1].get("content")) if is_message else (),
        steps=()
        if is_message
        else [
            (StepDefinition.load(one["kind"], one["name"], one["definition"]), one["overrides"]) for one, _ in inputs
        ],
        title=row["title"],
        metadata=row["metadata"],
        context=row["context"],
        project_ids=row["project_ids"] if row["workspace_id"] is None else (),
        workspace_id=row["workspace_id"],
        permissions=permissions,
    )


async def load_batch(source: Connection | Database, principal: Principal, batch_id: str) -> Batch:
    arguments = (batch_id, principal.organisation, ViewFilter.of(principal).audiences)
    if isinstance(source, Database):
        row = await source.fetchrow("batch", *arguments)
    else:
        row = await source.fetchrow(SQL["batch"], *arguments)
    if row is None:
        raise NotFound("batch", batch_id)
    return make_batch(row)


def make_batch(row: Row) -> Batch:
    stored = row["definition"]
    names = ("pending", "running", "waiting", "completed", "failed", "cancelled")
    return Batch(
        id=row["id"],
        organisation=row["organisation"],
        name=row["name"],
        priority=BatchPriority(stored["priority"]),
        max_running=row["max_running"],
        total=row["total"],
        counts=BatchCounts(**{name: row[name] or 0 for name in names}),
        retry_of=stored.get("retry_of"),
        created_by=row["principal"],
        audience=Audience.load(row["visible_to"]),
        created_at=row["created_at"],
        cancelled_at=row["cancelled_at"],
        ended_at=row["ended_at"],
    )


async def read_jobs(
    database: Database,
    principal: Principal,
    batch_id: str,
    *,
    states: Sequence[JobState] = (),
    custom_id: str | None = None,
    limit: int,
    after: int,
    in_order_of_ending: bool = False,
) -> Sequence[Job]:
    await load_batch(database, principal, batch_id)
    rows = await database.fetch(
        "jobs",
        batch_id=batch_id,
        organisation=principal.organisation,
        audiences=ViewFilter.of(principal).audiences,
        states=list(states) or None,
        custom_id=custom_id,
        limit=limit,
        after=after,
        in_order_of_ending=in_order_of_ending,
    )
    return [_load_job(row) for row in rows]


def _load_job(row: Row) -> Job:
    return Job(
        batch_id=row["group_id"],
        custom_id=row["group_name"],
        index=row["group_index"],
        number=row["group_end"],
        session_id=row["session_id"],
        state=JobState(row["state"]),
        result=row["result"] or {},
        end_reason=row["end_reason"],
        usage=load_usage(row),
        active_seconds=row["active_seconds"],
        turns=row["turns"],
        created_at=row["created_at"],
        started_at=row["started_at"],
        ended_at=row["ended_at"],
    )
