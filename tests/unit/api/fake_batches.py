"""In-memory fakes of batches. Jobs are listed, and nothing runs them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from footplate.domain import ids
from footplate.domain.errors import Conflict, NotFound
from footplate.domain.json import JsonObject
from footplate.domain.organisations.principals import Principal
from footplate.domain.pagination import Page
from footplate.domain.sessions.batches import (
    Batch,
    BatchCounts,
    BatchDefinition,
    CreatedBatch,
    Job,
    JobState,
)
from footplate.domain.sessions.events import Usage

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class BatchWorld:
    batches: dict[str, Batch] = field(default_factory=dict)
    definitions: dict[str, BatchDefinition] = field(default_factory=dict)
    jobs: dict[str, list[Job]] = field(default_factory=dict)

    def end_job(self, batch_id: str, index: int, state: JobState, **fields: object) -> None:
        jobs = self.jobs[batch_id]
        number = sum(job.number is not None for job in jobs) + 1
        ended = replace(jobs[index], state=state, number=number, started_at=NOW, ended_at=NOW)
        jobs[index] = replace(ended, **fields)  # pyrefly: ignore[bad-argument-type]


class FakeBatchReads:
    batch_world: BatchWorld

    async def batch(self, principal: Principal, batch_id: str) -> Batch:
        found = self.batch_world.batches.get(batch_id)
        if found is None or found.organisation != principal.organisation:
            raise NotFound("batch", batch_id)
        return found

    async def batches(self, principal: Principal, page: Page) -> Sequence[Batch]:
        found = [one for one in self.batch_world.batches.values() if one.organisation == principal.organisation]
        return found[::-1][: page.limit]

    async def jobs(
        self,
        principal: Principal,
        batch_id: str,
        *,
        states: Sequence[JobState] = (),
        custom_id: str | None = None,
        limit: int,
        after: int | None,
    ) -> Sequence[Job]:
        await self.batch(principal, batch_id)
        start = -1 if after is None else after
        found = [job for job in self.batch_world.jobs[batch_id] if job.index > start]
        return [job for job in found if job.state in (states or JobState) and custom_id in {None, job.custom_id}][
            :limit
        ]

    async def job_results(
        self, principal: Principal, batch_id: str, *, states: Sequence[JobState] = (), limit: int, after: int
    ) -> Sequence[Job]:
        await self.batch(principal, batch_id)
        found = [job for job in self.batch_world.jobs[batch_id] if (job.number or 0) > after]
        return sorted((job for job in found if job.state in (states or JobState)), key=lambda job: job.number or 0)[
            :limit
        ]


class FakeBatchUnit(FakeBatchReads):
    async def create_batch(
        self, principal: Principal, definition: BatchDefinition, *, retry_of: str | None = None
    ) -> CreatedBatch:
        batch = Batch(
            id=ids.new_id(ids.BATCH),
            organisation=principal.organisation,
            name=definition.name,
            priority=definition.priority,
            max_running=definition.max_running,
            total=len(definition.jobs),
            counts=BatchCounts(pending=len(definition.jobs)),
            retry_of=retry_of,
            created_by=principal.id,
            audience=definition.audience,
            created_at=NOW,
            cancelled_at=None,
            ended_at=None,
        )
        self.batch_world.batches[batch.id] = batch
        self.batch_world.definitions[batch.id] = definition
        self.batch_world.jobs[batch.id] = [
            Job(
                batch_id=batch.id,
                custom_id=job.custom_id,
                index=index,
                number=None,
                session_id=ids.new_id(ids.SESSION),
                state=JobState.PENDING,
                result={},
                end_reason=None,
                usage=Usage(),
                active_seconds=0.0,
                turns=0,
                created_at=NOW,
                started_at=None,
                ended_at=None,
            )
            for index, job in enumerate(definition.jobs)
        ]
        return CreatedBatch(batch=batch, session_ids=[job.session_id for job in self.batch_world.jobs[batch.id]])

    async def retry_batch(
        self,
        principal: Principal,
        batch_id: str,
        states: Sequence[JobState],
        *,
        check_context: Callable[[JsonObject], None] | None = None,
    ) -> CreatedBatch:
        await self.batch(principal, batch_id)
        old = self.batch_world.definitions[batch_id]
        jobs = [old.jobs[job.index] for job in self.batch_world.jobs[batch_id] if job.state in states]
        if not jobs:
            raise Conflict("There is no such job.")
        for job in jobs:
            if check_context is not None:
                check_context(job.context)
        return await self.create_batch(principal, replace(old, jobs=jobs), retry_of=batch_id)

    async def cancel_batch(self, principal: Principal, batch_id: str) -> Batch:
        batch = replace(await self.batch(principal, batch_id), cancelled_at=NOW)
        self.batch_world.batches[batch_id] = batch
        return batch
