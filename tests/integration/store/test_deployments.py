"""Deployments in the real database: runs that start once, overlap policies, failures that pause, and their members."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest

from footplate.domain import ids
from footplate.domain.errors import Conflict, InvalidRequest, NotFound
from footplate.domain.json import JsonObject
from footplate.domain.organisations.limits import ORGANISATION, LimitName
from footplate.domain.organisations.principals import Principal, PrincipalKind
from footplate.domain.organisations.visibility import Audience, Visibility
from footplate.domain.pagination import Page
from footplate.domain.ports.api import SessionFilter
from footplate.domain.ports.deployments import Firing
from footplate.domain.sessions import deployments, events
from footplate.domain.sessions.cron import CronSchedule
from footplate.domain.sessions.deployments import (
    Deployment,
    DeploymentDefinition,
    DeploymentFilter,
    DeploymentRun,
    OverlapPolicy,
    RunErrorType,
    RunFilter,
    SessionTemplate,
)
from footplate.domain.sessions.ending import EndOutcome
from footplate.domain.sessions.steps import StepDefinition, StepKind, StepState
from footplate.domain.sessions.turns import Mode, Session
from footplate.store.deployment_firing import DeploymentFirings
from footplate.store.log.feed import Feed
from footplate.store.resources.api_keys import ApiKeys
from footplate.store.resources.deployments import DeploymentScheduleStore, RunExpiry
from footplate.store.resources.limits import LimitStore
from footplate.store.unit_of_work import UnitOfWork

from .cell import AGENT, COMPLETED, Cell

HOURLY = CronSchedule("0 * * * *", "Europe/Berlin")
SHELL = StepDefinition(kind=StepKind.SHELL, command="make", name="build")
MESSAGE: JsonObject = {"content": [events.text_block("Check the build")]}


def _at(minutes_ago: int = 0) -> datetime:
    """A time of a schedule, with whole seconds as the engine's times have."""
    return datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=minutes_ago)


@dataclass(frozen=True, slots=True)
class Office:
    """An organisation with an administrator, and everything that a deployment of it needs."""

    cell: Cell
    admin: Principal
    agent: JsonObject
    environment_id: str

    @property
    def firings(self) -> DeploymentFirings:
        return DeploymentFirings(self.cell.database, self.cell.units, lambda _organisation, _context: None)

    @asynccontextmanager
    async def unit(self) -> AsyncIterator[UnitOfWork]:
        async with self.cell.units.unit(self.admin, None) as unit:
            yield unit

    async def member(self, *roles: str) -> Principal:
        async with self.unit() as unit:
            kind, name = PrincipalKind.PERSON, ids.new_id("name")
            member = await unit.create_member(self.admin, kind=kind, name=name, roles=[*roles])
        return Principal(self.admin.organisation, member.id, member.name, frozenset(roles))

    async def create(self, principal: Principal | None = None, **fields: object) -> Deployment:
        template = SessionTemplate(agent=self.agent, messages=[MESSAGE], steps=[(SHELL, {})])
        definition = DeploymentDefinition(
            name="nightly", environment_id=self.environment_id, template=template, schedule=HOURLY
        )
        definition = replace(definition, **fields)  # pyrefly: ignore[bad-argument-type]
        async with self.unit() as unit:
            return await unit.create_deployment(principal or self.admin, definition)

    async def fire(self, deployment: Deployment, at: datetime, *, schedule: CronSchedule | None = HOURLY) -> Firing:
        return await self.firings.fire(deployment.organisation, deployment.id, at, schedule=schedule)

    async def start(self, deployment: Deployment, at: datetime) -> DeploymentRun:
        run = (await self.fire(deployment, at)).run
        assert run is not None
        return run

    async def read(self, deployment: Deployment) -> Deployment:
        return await self.cell.reads.deployment(self.admin, deployment.id)

    async def runs(self, deployment: Deployment) -> list[DeploymentRun]:
        where = RunFilter(deployment_id=deployment.id)
        return [*await self.cell.reads.deployment_runs(self.admin, Page(limit=100, include_archived=True), where)]

    async def sessions(self, deployment: Deployment) -> list[Session]:
        where = SessionFilter(deployment_id=deployment.id)
        return [*await self.cell.reads.sessions(self.admin, Page(limit=100, include_archived=True), where)]

    async def finish(self, run: DeploymentRun) -> None:
        """Runs the message and the step of a run's session."""
        assert run.session_id is not None
        for _ in range(2):
            claim = await self.cell.claim(run.session_id, self.admin)
            await self.cell.turns.finish(claim, COMPLETED)

    async def changes(self) -> list[tuple[str, JsonObject]]:
        feed = Feed(self.cell.database, self.cell.reads.positions)
        await feed.number_changes([self.admin.organisation])
        found = await feed.read_changes(self.admin.organisation, 0, 1000)
        shown = [one.event.event for one in found if one.event is not None]
        return [(event.type, event.body) for event in shown if event.type.startswith("deployment")]


@pytest.fixture
async def office(cell: Cell, principal: Principal) -> Office:
    keys = ApiKeys(cell.database)
    admin = await keys.authenticate(await keys.create_key(principal.organisation, "admin", ["admin"]))
    async with cell.units.unit(admin, None) as unit:
        made = await unit.create_agent(admin, name="a", definition={"model": AGENT["model"]}, metadata={})
        environment = await unit.create_environment(
            admin, name=ids.new_id("name"), description=None, config={}, metadata={}
        )
    return Office(cell, admin, {**AGENT, "id": made.id}, environment.id)


async def test_a_run_creates_a_background_session_with_messages_and_steps(office: Office) -> None:
    deployment = await office.create(metadata={"a": "b"}, schedule=None)
    async with office.unit() as unit:
        run, (accepted,) = await unit.run_deployment(office.admin, deployment.id, check_context=lambda _: None)
    assert (run.error, run.scheduled_at, run.skipped) == (None, None, False)
    assert run.session_id is not None
    assert (accepted.session_id, accepted.wake) == (run.session_id, True)
    session = await office.cell.reads.session(office.admin, run.session_id)
    assert (session.title, session.mode, session.metadata) == ("nightly", Mode.BACKGROUND, {"a": "b"})
    assert (session.deployment_id, session.created_by) == (deployment.id, office.admin.id)
    states = [StepState.PENDING]
    steps = await office.cell.reads.steps(office.admin, run.session_id, states=states, limit=10, after=None)
    assert [step.definition.kind for step in steps] == [StepKind.PROMPT, StepKind.SHELL]
    assert await office.cell.reads.deployment_run(office.admin, run.id) == run
    kinds = [kind for kind, _ in await office.changes()]
    assert kinds == ["deployment.created", "deployment_run.succeeded"]


async def test_a_time_that_fires_again_creates_no_second_session(office: Office) -> None:
    deployment, at = await office.create(), _at()
    firings = await asyncio.gather(*(office.fire(deployment, at) for _ in range(4)))
    first = await office.start(deployment, at)
    assert {firing.run for firing in firings} == {first}
    assert sum(len(firing.accepted) for firing in firings) == 1
    assert len(await office.sessions(deployment)) == 1
    other = await office.start(deployment, at + timedelta(minutes=1))
    assert other.session_id != first.session_id
    assert [run.id for run in await office.runs(deployment)] == [other.id, first.id]
    assert (await office.read(deployment)).last_run_at is not None


async def test_an_outdated_schedule_starts_nothing(office: Office) -> None:
    deployment, at = await office.create(), _at()
    assert not (await office.fire(deployment, at, schedule=CronSchedule("1 * * * *", "UTC"))).is_current
    async with office.unit() as unit:
        await unit.pause_deployment(office.admin, deployment.id)
    assert not (await office.fire(deployment, at)).is_current
    async with office.unit() as unit:
        await unit.unpause_deployment(office.admin, deployment.id)
        await unit.archive_deployment(office.admin, deployment.id)
    assert not (await office.fire(deployment, at)).is_current
    assert not (await office.fire(replace(deployment, id="depl_none"), at)).is_current
    assert await office.runs(deployment) == []
    with pytest.raises(InvalidRequest):
        async with office.unit() as unit:
            await unit.unpause_deployment(office.admin, deployment.id)


async def test_a_time_that_is_too_late_is_recorded_and_starts_nothing(office: Office) -> None:
    deployment = await office.create(catch_up_seconds=60)
    assert (await office.start(deployment, _at(1))).error is None
    late = await office.start(deployment, _at(10))
    assert late.error is not None
    assert (late.error.type, late.session_id) == (RunErrorType.REJECTED, None)
    assert not (await office.read(deployment)).is_paused
    assert [kind for kind, _ in await office.changes()][-1] == "deployment_run.failed"


async def test_old_runs_are_deleted_and_their_times_start_nothing(office: Office) -> None:
    deployment = await office.create()
    old, new = await office.start(deployment, _at(2)), await office.start(deployment, _at(1))
    long_ago = _at(40 * 24 * 60)
    async with office.cell.database.connection() as connection:
        await connection.execute(
            "update deployment_runs set created_at = $2, scheduled_at = $2 where id = $1", old.id, long_ago
        )
    await RunExpiry(office.cell.database, None).run()
    assert len(await office.runs(deployment)) == 2
    await RunExpiry(office.cell.database, timedelta(days=32)).run()
    assert [run.id for run in await office.runs(deployment)] == [new.id]
    again = await office.start(deployment, long_ago)
    assert (again.error is not None, again.session_id) == (True, None)
    assert {session.id for session in await office.sessions(deployment)} == {old.session_id, new.session_id}


async def test_skip_records_that_an_earlier_run_has_not_finished(office: Office) -> None:
    deployment = await office.create(overlap_policy=OverlapPolicy.SKIP)
    first = await office.start(deployment, _at(3))
    skipped = await office.start(deployment, _at(2))
    assert skipped.skipped
    assert skipped.error is not None
    assert str(first.session_id) in skipped.error.message
    await office.finish(first)
    again = await office.start(deployment, _at(1))
    assert again.session_id is not None
    assert await office.start(deployment, _at(2)) != again
    assert "deployment_run.failed" not in [kind for kind, _ in await office.changes()]


async def test_buffer_one_starts_one_run_when_the_earlier_one_has_finished(office: Office) -> None:
    deployment = await office.create(overlap_policy=OverlapPolicy.BUFFER_ONE)
    first, at = await office.start(deployment, _at(9)), _at(8)
    assert (await office.fire(deployment, at)).run is None
    assert (await office.fire(deployment, at)).run is None
    assert (await office.start(deployment, _at(7))).skipped

    async def find_buffered() -> list[datetime]:
        return [time for _, found, time in await office.firings.find_buffered() if found == deployment.id]

    assert await find_buffered() == []
    assert (await office.fire(deployment, at, schedule=None)).run is None
    await office.finish(first)
    assert await find_buffered() == [at]
    buffered = (await office.fire(deployment, at, schedule=None)).run
    assert buffered is not None
    assert (buffered.scheduled_at, buffered.error) == (at, None)
    assert await find_buffered() == []
    assert (await office.fire(deployment, at, schedule=None)).run is None
    assert (await office.start(deployment, at)).id == buffered.id
    assert len(await office.sessions(deployment)) == 2


async def test_cancel_other_ends_the_session_of_the_earlier_run(office: Office) -> None:
    deployment = await office.create(overlap_policy=OverlapPolicy.CANCEL_OTHER)
    first = await office.start(deployment, _at(2))
    firing = await office.fire(deployment, _at(1))
    assert len(firing.accepted) == 2
    assert first.session_id is not None
    ended = await office.cell.reads.session(office.admin, first.session_id)
    assert ended.end is not None
    assert ended.end.outcome is EndOutcome.CANCELLED
    await office.start(deployment, _at(0))
    running = [one.id for one in await office.sessions(deployment) if one.end is None]
    assert len(running) == 1


async def test_a_manual_run_starts_beside_an_earlier_one_and_while_paused(office: Office) -> None:
    deployment = await office.create(overlap_policy=OverlapPolicy.SKIP)
    await office.start(deployment, _at())
    async with office.unit() as unit:
        await unit.pause_deployment(office.admin, deployment.id)
    caller = await office.member("operator")
    async with office.unit() as unit:
        run, _ = await unit.run_deployment(caller, deployment.id, check_context=lambda _: None)
    assert run.session_id is not None
    assert (await office.cell.reads.session(office.admin, run.session_id)).created_by == caller.id
    assert (await office.read(deployment)).principal_id == office.admin.id


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("update agents set archived_at = now() where organisation = $1", RunErrorType.AGENT_ARCHIVED),
        ("update environments set archived_at = now() where organisation = $1", RunErrorType.ENVIRONMENT_ARCHIVED),
        ("delete from environments where organisation = $1", RunErrorType.ENVIRONMENT_NOT_FOUND),
        ("update principals set disabled_at = now() where organisation = $1", RunErrorType.UNKNOWN),
        ("update principals set roles = '{viewer}' where organisation = $1", RunErrorType.UNKNOWN),
    ],
)
async def test_a_run_that_can_never_start_pauses_the_schedule(
    office: Office, statement: str, expected: RunErrorType
) -> None:
    deployment = await office.create()
    async with office.cell.database.connection() as connection:
        await connection.execute(statement, office.admin.organisation)
    run = await office.start(deployment, _at())
    assert run.error is not None
    assert (run.error.type, run.session_id) == (expected, None)
    paused = await office.read(deployment)
    assert paused.paused_reason == {"type": "error", "error": run.error.dump()}
    assert [kind for kind, _ in await office.changes()][-2:] == ["deployment_run.failed", "deployment.paused"]
    assert not (await office.fire(deployment, _at(-1))).is_current
    assert await office.sessions(deployment) == []


async def test_a_missing_file_or_project_pauses_and_a_limit_does_not(office: Office) -> None:
    resources: list[JsonObject] = [{"type": "file", "file_id": "file_none", "mount_path": "/a"}]
    template = SessionTemplate(agent=office.agent, messages=[MESSAGE], resources=resources)
    missing = await office.start(await office.create(template=template), _at())
    assert missing.error is not None
    assert missing.error.type is RunErrorType.FILE_NOT_FOUND
    await LimitStore(office.cell.database).set_operator_limit(
        office.admin.organisation, LimitName.SESSIONS, ORGANISATION, 0
    )
    deployment = await office.create()
    limited = await office.start(deployment, _at())
    assert limited.error is not None
    assert limited.error.type is RunErrorType.LIMIT_REACHED
    assert not (await office.read(deployment)).is_paused


async def test_a_successor_takes_over_and_another_member_can_resume(office: Office) -> None:
    author, successor = await office.member("operator"), await office.member("operator")
    deployment = await office.create(author)
    async with office.unit() as unit:
        await unit.update_member(office.admin, author.id, roles=None, disabled=True, successor_id=successor.id)
    run = await office.start(deployment, _at(3))
    assert run.session_id is not None
    assert (await office.cell.reads.session(office.admin, run.session_id)).created_by == successor.id
    assert (await office.read(deployment)).owner_id == successor.id
    async with office.unit() as unit:
        await unit.update_member(office.admin, successor.id, roles=None, disabled=True, successor_id=None)
    failed = await office.start(deployment, _at(2))
    assert failed.error is not None
    assert (await office.read(deployment)).is_paused
    async with office.unit() as unit:
        resumed = await unit.unpause_deployment(office.admin, deployment.id)
    assert resumed.principal_id == office.admin.id
    assert (await office.start(deployment, _at(1))).error is None


async def test_who_changes_a_deployment_is_who_it_runs_as(office: Office) -> None:
    author, other = await office.member("operator"), await office.member("operator")
    deployment = await office.create(author)
    async with office.unit() as unit:
        await unit.update_deployment(other, deployment.id, lambda found: replace(found.definition, name="other"))
    run = await office.start(deployment, _at())
    assert run.session_id is not None
    assert (await office.cell.reads.session(office.admin, run.session_id)).created_by == other.id


async def test_private_deployments_and_their_runs_are_hidden(office: Office) -> None:
    author, other = await office.member("operator"), await office.member("operator")
    deployment = await office.create(author, audience=Audience(Visibility.PRIVATE))
    run = await office.start(deployment, _at())
    reads = office.cell.reads
    for call in (reads.deployment(other, deployment.id), reads.deployment_run(other, run.id)):
        with pytest.raises(NotFound):
            await call
    assert await reads.deployments(other, Page(limit=10), DeploymentFilter()) == []
    assert await reads.deployment_runs(other, Page(limit=10), RunFilter()) == []
    assert [one.id for one in await reads.deployments(author, Page(limit=10), DeploymentFilter())] == [deployment.id]
    with pytest.raises(NotFound):
        async with office.unit() as unit:
            await unit.pause_deployment(other, deployment.id)


async def test_an_organisation_has_a_limited_number_of_schedules(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deployments, "MAX_SCHEDULES", 2)
    first, _ = await office.create(), await office.create()
    manual = await office.create(schedule=None)
    with pytest.raises(Conflict):
        await office.create()
    with pytest.raises(Conflict):
        async with office.unit() as unit:
            await unit.update_deployment(
                office.admin, manual.id, lambda found: replace(found.definition, schedule=HOURLY)
            )
    async with office.unit() as unit:
        await unit.update_deployment(office.admin, first.id, lambda found: replace(found.definition, name="renamed"))
        await unit.archive_deployment(office.admin, first.id)
    await office.create()


async def test_each_change_has_to_be_applied_to_the_engine(office: Office) -> None:
    store = DeploymentScheduleStore(office.cell.database)
    manual, deployment = await office.create(schedule=None), await office.create()
    state = await store.load(manual.id)
    assert state is not None
    assert (state.is_applied, state.schedule) == (True, None)
    assert deployment.id in await store.find_unapplied(1000)
    first = await store.load(deployment.id)
    assert first is not None
    async with office.unit() as unit:
        await unit.pause_deployment(office.admin, deployment.id)
    await store.mark_applied(first)  # the pause is newer
    second = await store.load(deployment.id)
    assert second is not None
    assert (second.is_applied, second.is_paused, second.schedule) == (False, True, HOURLY)
    await store.mark_applied(second)
    assert deployment.id not in await store.find_unapplied(1000)
    assert deployment.id in await store.find_unchecked(1000)
    async with office.unit() as unit:
        await unit.archive_deployment(office.admin, deployment.id)
    archived = await store.load(deployment.id)
    assert archived is not None
    assert (archived.is_applied, archived.schedule) == (False, None)
    assert deployment.id not in await store.find_unchecked(1000)
