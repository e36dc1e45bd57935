"""In-memory fakes of deployments. A run is only recorded; nothing creates its session."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from footplate.domain import ids
from footplate.domain.errors import NotFound
from footplate.domain.organisations.principals import Principal
from footplate.domain.pagination import Page
from footplate.domain.ports.api import AcceptedInputs
from footplate.domain.sessions.deployments import (
    MANUAL_PAUSE,
    CheckContext,
    Deployment,
    DeploymentDefinition,
    DeploymentFilter,
    DeploymentRun,
    RunFilter,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class DeploymentWorld:
    deployments: dict[str, Deployment] = field(default_factory=dict)
    runs: list[DeploymentRun] = field(default_factory=list)


class FakeDeploymentReads:
    deployment_world: DeploymentWorld

    async def deployment(self, principal: Principal, deployment_id: str) -> Deployment:
        found = self.deployment_world.deployments.get(deployment_id)
        if found is None or found.organisation != principal.organisation:
            raise NotFound("deployment", deployment_id)
        return found

    async def deployments(self, principal: Principal, page: Page, where: DeploymentFilter) -> Sequence[Deployment]:
        found = [
            one
            for one in self.deployment_world.deployments.values()
            if one.organisation == principal.organisation
            and (page.include_archived or one.archived_at is None)
            and where.is_paused in {None, one.is_paused}
            and where.agent_id in {None, one.definition.template.agent["id"]}
        ]
        return _cut(found[::-1], page)

    async def deployment_run(self, principal: Principal, run_id: str) -> DeploymentRun:
        for run in self.deployment_world.runs:
            if run.id == run_id:
                await self.deployment(principal, run.deployment_id)
                return run
        raise NotFound("deployment run", run_id)

    async def deployment_runs(self, principal: Principal, page: Page, where: RunFilter) -> Sequence[DeploymentRun]:
        everything = self.deployment_world.deployments.values()
        own = {one.id for one in everything if one.organisation == principal.organisation}
        found = [
            run
            for run in self.deployment_world.runs
            if run.deployment_id in own
            and where.deployment_id in {None, run.deployment_id}
            and where.has_error in {None, run.error is not None}
            and where.is_scheduled in {None, run.scheduled_at is not None}
        ]
        return _cut(found[::-1], page)


class FakeDeploymentUnit(FakeDeploymentReads):
    async def create_deployment(self, principal: Principal, definition: DeploymentDefinition) -> Deployment:
        created_at = NOW + timedelta(seconds=len(self.deployment_world.deployments))
        return self._store(
            Deployment(
                id=ids.new_id(ids.DEPLOYMENT),
                organisation=principal.organisation,
                definition=definition,
                principal_id=principal.id,
                owner_id=principal.id,
                paused_reason=None,
                revision=1,
                last_run_at=None,
                created_at=created_at,
                updated_at=created_at,
                archived_at=None,
            )
        )

    async def update_deployment(
        self, principal: Principal, deployment_id: str, change: Callable[[Deployment], DeploymentDefinition]
    ) -> Deployment:
        old = await self.deployment(principal, deployment_id)
        return self._store(replace(old, definition=change(old), principal_id=principal.id))

    async def pause_deployment(self, principal: Principal, deployment_id: str) -> Deployment:
        return self._store(replace(await self.deployment(principal, deployment_id), paused_reason=MANUAL_PAUSE))

    async def unpause_deployment(self, principal: Principal, deployment_id: str) -> Deployment:
        return self._store(replace(await self.deployment(principal, deployment_id), paused_reason=None))

    async def archive_deployment(self, principal: Principal, deployment_id: str) -> Deployment:
        return self._store(replace(await self.deployment(principal, deployment_id), archived_at=NOW))

    async def run_deployment(
        self, principal: Principal, deployment_id: str, *, check_context: CheckContext
    ) -> tuple[DeploymentRun, Sequence[AcceptedInputs]]:
        found = await self.deployment(principal, deployment_id)
        template = found.definition.template
        check_context(template.context)
        run = DeploymentRun(
            id=ids.new_id(ids.DEPLOYMENT_RUN),
            deployment_id=deployment_id,
            agent_id=str(template.agent["id"]),
            agent_version=1,
            scheduled_at=None,
            session_id=ids.new_id(ids.SESSION),
            error=None,
            skipped=False,
            created_at=NOW + timedelta(seconds=len(self.deployment_world.runs)),
        )
        self.deployment_world.runs.append(run)
        accepted = AcceptedInputs(organisation=principal.organisation, session_id=str(run.session_id), wake=True)
        return run, [accepted]

    def _store(self, deployment: Deployment) -> Deployment:
        self.deployment_world.deployments[deployment.id] = deployment
        return deployment


Row = TypeVar("Row", Deployment, DeploymentRun)


def _cut(rows: Sequence[Row], page: Page) -> Sequence[Row]:
    start = [(row.created_at, row.id) for row in rows].index(page.after) + 1 if page.after is not None else 0
    return rows[start : start + page.limit]
