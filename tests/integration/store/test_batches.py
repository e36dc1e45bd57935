"""Batches in the real database: all jobs or none, results in the order of ending, retries, limits and visibility."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from footplate.domain import ids
from footplate.domain.errors import Conflict, InvalidRequest, NotFound
from footplate.domain.json import JsonObject
from footplate.domain.organisations.limits import ORGANISATION, LimitName, OrganisationLimitExceeded
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.visibility import Audience, Visibility
from footplate.domain.pagination import Page
from footplate.domain.policy.permissions import Decision, Layer, PermissionOutcome
from footplate.domain.ports.api import Input
from footplate.domain.sessions import events
from footplate.domain.sessions.batches import (
    Batch,
    BatchDefinition,
    BatchPriority,
    BatchStatus,
    CreatedBatch,
    JobDefinition,
    JobState,
)
from footplate.domain.sessions.events import Usage
from footplate.domain.sessions.feed import is_change
from footplate.domain.sessions.steps import OnFailure, StepDefinition, StepKind
from footplate.domain.sessions.turns import Mode, SessionToWake, TurnOutcome, TurnStatus
from footplate.store.leases.worker_lease_store import WorkerLeases
from footplate.store.log.deferred_turns import DeferredTurns
from footplate.store.resources.limits import LimitStore
from footplate.store.retention.group_cancellation import GroupCancellation

from .cell import AGENT, COMPLETED, Cell, awaiting, custom_tool_call, new_principal

pytestmark = pytest.mark.requirement("S3")

FAILED = TurnOutcome(status=TurnStatus.FAILED, error_type="unknown_error", error_message="the model is gone")
SHELL = StepDefinition(kind=StepKind.SHELL, command="make", name="build")


async def _environment(cell: Cell, principal: Principal) -> str:
    async with cell.units.unit(principal, None) as unit:
        name = ids.new_id("name")
        return (await unit.create_environment(principal, name=name, description=None, config={}, metadata={})).id


def _job(environment_id: str, number: int, text: str = "hi", **fields: object) -> JobDefinition:
    content: list[JsonObject] = [events.text_block(f"{text} {number}")]
    job = JobDefinition(custom_id=f"job-{number}", agent=AGENT, environment_id=environment_id, content=content)
    return replace(job, **fields)  # pyrefly: ignore[bad-argument-type]


async def _create(cell: Cell, principal: Principal, jobs: Sequence[JobDefinition], **fields: object) -> CreatedBatch:
    definition = replace(BatchDefinition(jobs=jobs), **fields)  # pyrefly: ignore[bad-argument-type]
    async with cell.units.unit(principal, None) as unit:
        return await unit.create_batch(principal, definition)


async def _run(cell: Cell, principal: Principal, session_id: str, outcome: TurnOutcome = COMPLETED) -> None:
    claim = await cell.claim(session_id, principal)
    await cell.turns.append(claim, [], usage=Usage(input_tokens=10, requests=1))
    await cell.turns.finish(claim, outcome)


async def _read(cell: Cell, principal: Principal, batch: Batch) -> Batch:
    return await cell.reads.batch(principal, batch.id)


async def test_each_job_is_a_background_session_that_ends_with_its_work(cell: Cell, principal: Principal) -> None:
    environment_id = await _environment(cell, principal)
    jobs = [
        _job(environment_id, 0, title="first", metadata={"a": "b"}),
        _job(environment_id, 1, content=(), steps=[(SHELL, {})]),
    ]
    created = await _create(cell, principal, jobs, priority=BatchPriority.LOW, name="nightly")
    first, second = created.session_ids
    assert (created.batch.status, created.batch.total, created.batch.counts.pending) == (BatchStatus.IN_PROGRESS, 2, 2)
    session = await cell.reads.session(principal, first)
    assert (session.mode, session.ends_when_done, session.title) == (Mode.BACKGROUND, True, "first")
    assert session.metadata == {"a": "b"}
    assert (await cell.reads.session(principal, second)).title == "job-1"
    found = await WorkerLeases(cell.database).find_sessions_to_wake(older_than=-1, lost_for=60, limit=1000)
    assert {SessionToWake(principal.organisation, session_id, 5) for session_id in (first, second)} <= {*found}
    await _run(cell, principal, first)
    claim = await cell.claim(second, principal)
    assert (await _read(cell, principal, created.batch)).counts.running == 1
    assert claim.step is not None
    assert claim.step.definition == SHELL
    command: JsonObject = {"exit_code": 2, "stdout": {"text": "out"}, "stderr": {"text": "no rule"}}
    await cell.turns.finish(claim, replace(COMPLETED, step_failed=True, data={"command": command}))
    batch = await _read(cell, principal, created.batch)
    assert (batch.status, batch.counts.completed, batch.counts.failed) == (BatchStatus.ENDED, 1, 1)
    assert batch.ended_at is not None
    ended = await cell.reads.job_results(principal, batch.id, limit=10, after=0)
    assert [(job.custom_id, job.number, job.state) for job in ended] == [
        ("job-0", 1, JobState.COMPLETED),
        ("job-1", 2, JobState.FAILED),
    ]
    assert (ended[0].result["text"], ended[0].usage.input_tokens, ended[0].turns) == ("done", 10, 1)
    assert ended[1].data == {"exit_code": 2, "stdout": "out", "stderr": "no rule"}
    assert ended[1].error_message


async def test_results_are_read_in_the_order_of_ending_and_none_is_missed(cell: Cell, principal: Principal) -> None:
    environment_id = await _environment(cell, principal)
    created = await _create(cell, principal, [_job(environment_id, number) for number in range(5)])
    seen: list[str] = []
    last = 0
    for number in (3, 0, 4, 1, 2):
        await _run(cell, principal, created.session_ids[number])
        (job,) = await cell.reads.job_results(principal, created.batch.id, limit=10, after=last)
        seen.append(job.custom_id)
        last = job.number or 0
    assert seen == ["job-3", "job-0", "job-4", "job-1", "job-2"]
    jobs = await cell.reads.jobs(principal, created.batch.id, limit=2, after=2)
    assert [job.index for job in jobs] == [3, 4]


async def test_a_job_that_waits_for_a_client_is_counted_as_waiting(cell: Cell, principal: Principal) -> None:
    environment_id = await _environment(cell, principal)
    created = await _create(cell, principal, [_job(environment_id, 0)])
    claim = await cell.claim(created.session_ids[0], principal)
    call = custom_tool_call()
    await cell.turns.append(claim, [call])
    await cell.turns.finish(claim, awaiting(call))
    assert (await _read(cell, principal, created.batch)).counts.waiting == 1
    assert [
        job.custom_id
        for job in await cell.reads.jobs(principal, created.batch.id, states=[JobState.WAITING], limit=10, after=None)
    ] == ["job-0"]


async def test_no_batch_is_created_if_a_job_is_invalid(cell: Cell, principal: Principal) -> None:
    environment_id = await _environment(cell, principal)
    archived = await _environment(cell, principal)
    async with cell.units.unit(principal, None) as unit:
        await unit.archive_environment(principal, archived)
    with pytest.raises(InvalidRequest, match=r"requests\.1\.environment_id"):
        await _create(cell, principal, [_job(environment_id, 0), _job(archived, 1)])
    with pytest.raises(NotFound):
        await _create(cell, principal, [_job(environment_id, 0), _job("env_other", 1)])
    assert await cell.reads.batches(principal, Page(limit=10, include_archived=True)) == []


async def test_failed_jobs_are_repeated_in_a_new_batch(cell: Cell, principal: Principal) -> None:
    environment_id = await _environment(cell, principal)
    retried = replace(SHELL, on_failure=OnFailure.CONTINUE)
    jobs = [
        _job(environment_id, 0),
        _job(environment_id, 1, "x" * 100_000, title="large"),
        _job(environment_id, 2, content=(), steps=[(retried, {}), (replace(SHELL, name="next"), {})]),
    ]
    created = await _create(cell, principal, jobs, max_running=None)
    await _run(cell, principal, created.session_ids[0])
    await _run(cell, principal, created.session_ids[1], FAILED)
    await _run(cell, principal, created.session_ids[2])
    await _run(cell, principal, created.session_ids[2], replace(COMPLETED, step_failed=True))
    async with cell.units.unit(principal, None) as unit:
        again = await unit.retry_batch(principal, created.batch.id, [JobState.FAILED])
    assert (again.batch.retry_of, again.batch.total) == (created.batch.id, 2)
    found = await cell.reads.jobs(principal, again.batch.id, limit=10, after=None)
    assert [job.custom_id for job in found] == ["job-1", "job-2"]
    claim = await cell.claim(again.session_ids[0], principal)
    assert str(claim.content[0]["text"]).startswith("x" * 100_000)
    steps = await cell.reads.steps(principal, again.session_ids[1], states=(), limit=10, after=None)
    assert [(step.definition.name, step.definition.on_failure) for step in steps] == [
        ("build", OnFailure.CONTINUE),
        ("next", OnFailure.STOP),
    ]
    async with cell.units.unit(principal, None) as unit:
        with pytest.raises(Conflict, match="no job that has failed"):
            await unit.retry_batch(principal, again.batch.id, [JobState.FAILED])


async def test_repeated_jobs_have_the_fields_of_the_request_and_no_granted_rules(
    cell: Cell, principal: Principal
) -> None:
    environment_id = await _environment(cell, principal)
    async with cell.units.unit(principal, None) as unit:
        workspace = await unit.create_workspace(principal, name="work", project_ids=(), metadata={})
    rules: JsonObject = {"allow": ["Read"], "deny": ["Bash(rm *)"]}
    job = _job(environment_id, 0, permissions=rules, workspace_id=workspace.id, context={"directory": "/srv/old"})
    created = await _create(cell, principal, [job])
    (session_id,) = created.session_ids
    claim = await cell.claim(session_id, principal)
    ask = Decision(PermissionOutcome.ASK, "because", "Bash", Layer.AGENT)
    call = events.tool_use("bash", {"command": "make"}, call_id="a", decision=ask)
    await cell.turns.append(claim, [call])
    await cell.turns.finish(claim, awaiting(call))
    body: JsonObject = {"tool_use_id": call.id, "result": "allow", "session_rule": "Bash(make *)"}
    await cell.send(principal, session_id, Input(type=events.USER_TOOL_CONFIRMATION, body=body))
    assert (await cell.reads.session(principal, session_id)).permissions["allow"] == ["Read", "Bash(make *)"]
    await _run(cell, principal, session_id, FAILED)
    checked: list[JsonObject] = []
    async with cell.units.unit(principal, None) as unit:
        again = await unit.retry_batch(principal, created.batch.id, [JobState.FAILED], check_context=checked.append)
    assert checked == [{"directory": "/srv/old"}]
    repeated = await cell.reads.session(principal, again.session_ids[0])
    assert (repeated.permissions, repeated.workspace_id) == (rules, workspace.id)


async def test_limits_count_every_job(cell: Cell, principal: Principal) -> None:
    environment_id = await _environment(cell, principal)
    for name in (LimitName.SESSIONS, LimitName.QUEUED_STEPS):
        await LimitStore(cell.database).set_operator_limit(principal.organisation, name, ORGANISATION, 2)
        with pytest.raises(OrganisationLimitExceeded, match=name):
            await _create(cell, principal, [_job(environment_id, number) for number in range(3)])
        await LimitStore(cell.database).set_operator_limit(principal.organisation, name, ORGANISATION, None)


async def test_others_do_not_see_a_private_batch(cell: Cell, principal: Principal) -> None:
    environment_id = await _environment(cell, principal)
    created = await _create(cell, principal, [_job(environment_id, 0)], audience=Audience(Visibility.PRIVATE))
    colleague, stranger = new_principal(principal.organisation), new_principal()
    page = Page(limit=10, include_archived=True)
    assert [batch.id for batch in await cell.reads.batches(principal, page)] == [created.batch.id]
    for other in (colleague, stranger):
        assert await cell.reads.batches(other, page) == []
        with pytest.raises(NotFound):
            await cell.reads.batch(other, created.batch.id)
        with pytest.raises(NotFound):
            await cell.reads.jobs(other, created.batch.id, limit=10, after=None)
        async with cell.units.unit(other, None) as unit:
            with pytest.raises(NotFound):
                await unit.cancel_batch(other, created.batch.id)


async def test_hundreds_of_jobs_are_created_in_a_few_statements(cell: Cell, principal: Principal) -> None:
    environment_id = await _environment(cell, principal)
    created = await _create(cell, principal, [_job(environment_id, number) for number in range(400)])
    assert created.batch.counts.pending == 400
    assert len({*created.session_ids}) == 400


async def test_only_so_many_jobs_run_at_once_and_each_end_starts_the_next(cell: Cell, principal: Principal) -> None:
    environment_id = await _environment(cell, principal)
    jobs = [_job(environment_id, number) for number in range(4)]
    created = await _create(cell, principal, jobs, max_running=2, priority=BatchPriority.NORMAL)
    assert len(created.session_ids) == 2
    found = await cell.reads.jobs(principal, created.batch.id, limit=10, after=None)
    waiting = found[2].session_id
    await cell.expect_nothing_to_claim(waiting, principal)
    claim = await cell.claim(created.session_ids[0], principal)
    finished = await cell.turns.finish(claim, COMPLETED)
    assert [*finished.to_wake] == [(principal.organisation, waiting, 4, True)]
    for job in (found[1], found[2], found[3]):
        await _run(cell, principal, job.session_id)
    batch = await _read(cell, principal, created.batch)
    assert (batch.status, batch.counts.completed) == (BatchStatus.ENDED, 4)


async def test_a_cancelled_batch_ends_the_rest_and_keeps_the_results(cell: Cell, principal: Principal) -> None:
    environment_id = await _environment(cell, principal)
    created = await _create(cell, principal, [_job(environment_id, number) for number in range(4)], max_running=3)
    done, running, pending = created.session_ids
    await _run(cell, principal, done)
    claim = await cell.claim(running, principal)
    async with cell.units.unit(principal, None) as unit:
        assert (await unit.cancel_batch(principal, created.batch.id)).status is BatchStatus.CANCELLING
    # The process that cancelled it has died, so the sweep repeats the cancellation.
    cancellation = GroupCancellation(cell.database, cell.objects)
    stopped = await cancellation.cancel_abandoned()
    assert running in stopped.to_nudge
    await cell.expect_nothing_to_claim(pending, principal)
    assert (await _read(cell, principal, created.batch)).counts.cancelled == 2
    await cell.turns.finish(claim, replace(COMPLETED, status=TurnStatus.INTERRUPTED))
    await cancellation.cancel_abandoned()
    batch = await _read(cell, principal, created.batch)
    assert (batch.status, batch.counts.completed, batch.counts.cancelled) == (BatchStatus.ENDED, 1, 3)
    assert batch.cancelled_at is not None
    async with cell.units.unit(principal, None) as unit:
        again = await unit.retry_batch(principal, batch.id, [JobState.CANCELLED])
    assert again.batch.total == 3


async def test_the_feed_reports_each_job_and_the_end_of_the_batch(cell: Cell, principal: Principal) -> None:
    environment_id = await _environment(cell, principal)
    created = await _create(cell, principal, [_job(environment_id, number) for number in range(2)])
    await _run(cell, principal, created.session_ids[0])
    await _run(cell, principal, created.session_ids[1], FAILED)
    ends = [
        [one.event for one in await cell.positions(session_id, principal) if one.event.type.startswith("batch.")]
        for session_id in created.session_ids
    ]
    assert [[event.type for event in found] for found in ends] == [
        ["batch.job_ended"],
        ["batch.job_ended", "batch.ended"],
    ]
    assert ends[1][0].body["custom_id"] == "job-1"
    assert ends[1][0].body["error_message"] == "the model is gone"
    assert ends[1][1].body == {
        "batch_id": created.batch.id,
        "counts": {"completed": 1, "failed": 1, "cancelled": 0},
    }
    assert all(is_change(event.type, event.body) for found in ends for event in found)


async def test_turns_of_a_limited_organisation_start_by_priority(cell: Cell, principal: Principal) -> None:
    environment_id = await _environment(cell, principal)
    await LimitStore(cell.database).set_operator_limit(
        principal.organisation, LimitName.CONCURRENT_TURNS, ORGANISATION, 1
    )
    created = await _create(cell, principal, [_job(environment_id, number) for number in range(3)])
    running, *waiting = created.session_ids
    claim = await cell.claim(running, principal)
    for session_id in waiting:
        await cell.expect_nothing_to_claim(session_id, principal)
    interactive = await cell.session(principal, "a person waits")
    await cell.expect_nothing_to_claim(interactive, principal)
    await cell.turns.finish(claim, COMPLETED)
    released = await DeferredTurns(cell.database, LimitStore(cell.database)).release_turns()
    assert SessionToWake(principal.organisation, interactive) in released
    assert not {session_id for _, session_id, *_ in released} & {*waiting}
    await cell.claim(interactive, principal)
