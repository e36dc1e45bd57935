"""Implements `footplate schedules`: creates, shows, changes, pauses and runs deployments."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import typer

from footplate.cli.actions import projects as project_actions
from footplate.cli.actions.members import find_member_name, resolve_audience
from footplate.cli.actions.run import session_start
from footplate.cli.connection import run_with_client
from footplate.cli.json_output_models import ScheduleDetail
from footplate.cli.pipeline_file.pipeline_parser import InvalidPipeline, load_pipeline
from footplate.cli.profile.server_profiles import Server
from footplate.cli.render import schedule_views, terminal_io, value_formatting
from footplate.cli.render.schedule_views import ShownRun
from footplate.cli.render.session_tables import activity_label
from footplate.cli.render.terminal_io import Exit
from footplate.client import AsyncFootplate, ClientError, Deployment, DeploymentRun, NotFound, SchedulePreview
from footplate.client.pagination import Pages, drop_none
from footplate.domain import ids

_SHOWN_RUNS: Final = 10
_PAGE: Final = 100
_REQUESTS_AT_ONCE: Final = 8
_OPTIONS: Final = {
    "schedule.expression": "--cron",
    "schedule.timezone": "--timezone",
    "catch_up_seconds": "--catch-up",
    "name": "--name",
    "description": "--description",
}
"""The options for the fields of a schedule."""
_LOCAL_TIME: Final = Path("/etc/localtime")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleOptions:
    name: str | None
    cron: str | None
    timezone: str | None
    shell: tuple[str, ...]
    steps_file: Path | None
    overlap: str | None
    catch_up: int | None
    description: str | None

    def load_steps(self) -> list[dict[str, Any]] | None:
        """Returns the steps of the options. Raises `typer.BadParameter` for a file that is not valid."""
        if self.steps_file is None:
            return [{"kind": "shell", "command": command} for command in self.shell] or None
        try:
            return load_pipeline(self.steps_file).to_wire()
        except InvalidPipeline as error:
            raise typer.BadParameter(str(error)) from None


def create_schedule(
    request: session_start.RunRequest, wanted: ScheduleOptions, *, as_json: bool, profile: str | None
) -> None:
    steps = wanted.load_steps()
    commands = " && ".join(wanted.shell)
    name = wanted.name or value_formatting.title_from_prompt(request.prompt or commands or str(wanted.steps_file))
    schedule = None if wanted.cron is None else _build_cron(wanted.cron, wanted.timezone or find_local_timezone())

    async def work(client: AsyncFootplate, server: Server) -> Deployment:
        audience = await resolve_audience(client, request.visibility, request.team)
        selected = await project_actions.select_projects(client, server, request.projects, include_uncommitted=False)

        async def create(harness: str | None) -> Deployment:
            agent, environment_id = await session_start.choose_agent_and_environment(client, server, request, harness)
            return await client.deployments.create(
                name=name,
                agent=agent,
                environment_id=environment_id,
                initial_events=_build_messages(request.prompt) if request.prompt else None,
                steps=steps,
                schedule=schedule,
                overlap_policy=wanted.overlap,
                catch_up_seconds=wanted.catch_up,
                description=wanted.description,
                project_ids=selected.ids or None,
                context=selected.context or None,
                ends_when_done=request.end_when_done,
                **audience,
            )

        return await session_start.retry_with_fresh_ids(
            client, lambda: session_start.create_with_default_harness(server, request, create)
        )

    created = run_with_client(work, profile=profile, as_json=as_json, options=_OPTIONS)
    if as_json:
        terminal_io.print_json(created.wire())
        return
    terminal_io.print_result(created.id)
    terminal_io.print_note(schedule_views.describe_next(created))


def list_schedules(limit: int, *, status: Any, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> tuple[list[Deployment], Sequence[DeploymentRun]]:
        found = await _read(client.deployments.list(limit=min(limit, _PAGE), status=status), limit)
        if as_json:
            return found, []
        return found, (await client.deployment_runs.list(trigger_type="manual", limit=_PAGE).page()).data

    found, manual_runs = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        terminal_io.print_json([one.wire() for one in found])
    else:
        schedule_views.print_schedules(found, manual_runs)


def preview_schedule(expression: str, timezone: str | None, *, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> SchedulePreview:
        return await client.deployments.preview(expression=expression, timezone=timezone or find_local_timezone())

    options = {"schedule.expression": "EXPRESSION", "schedule.timezone": "--timezone"}
    found = run_with_client(work, profile=profile, as_json=as_json, options=options)
    if as_json:
        terminal_io.print_json(found.wire())
    else:
        schedule_views.print_preview(found)


def show_schedule(schedule: str, *, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> tuple[ScheduleDetail, list[ShownRun], str]:
        found = await _resolve(client, schedule)
        runs = (await client.deployment_runs.list(deployment_id=found.id, limit=_SHOWN_RUNS).page()).data
        detail = ScheduleDetail(schedule=found, runs=[*runs])
        if as_json:
            return detail, [], ""
        return detail, await _describe_runs(client, runs, {}), await find_member_name(client, found.runs_as)

    detail, runs, member_name = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        terminal_io.print_json(detail.model_dump(mode="json"))
    else:
        schedule_views.print_schedule(detail.schedule, runs, member_name)


def update_schedule(
    schedule: str,
    wanted: ScheduleOptions,
    *,
    prompt: str | None,
    agent: str | None,
    removes_cron: bool,
    as_json: bool,
    profile: str | None,
) -> None:
    fields = drop_none(
        name=wanted.name,
        description=wanted.description,
        overlap_policy=wanted.overlap,
        catch_up_seconds=wanted.catch_up,
        steps=wanted.load_steps(),
        agent=agent,
        initial_events=None if prompt is None else _build_messages(prompt),
    )
    if removes_cron:
        fields["schedule"] = None

    async def change(client: AsyncFootplate, found: Deployment) -> Deployment:
        changed = dict(fields)
        if wanted.cron or wanted.timezone:
            old = found.schedule
            expression = wanted.cron or (old.expression if old else None)
            if expression is None:
                raise ClientError("The schedule has no times yet.", help_text="Set them with --cron.")
            changed["schedule"] = _build_cron(
                expression, wanted.timezone or (old.timezone if old else find_local_timezone())
            )
        if not changed:
            raise ClientError("There is nothing to change.", help_text="Use at least one option.")
        return await client.deployments.update(found.id, **changed)

    _change(schedule, change, as_json=as_json, profile=profile)


def pause_schedule(schedule: str, *, as_json: bool, profile: str | None) -> None:
    _change(schedule, lambda client, found: client.deployments.pause(found.id), as_json=as_json, profile=profile)


def resume_schedule(schedule: str, *, as_json: bool, profile: str | None) -> None:
    _change(schedule, lambda client, found: client.deployments.unpause(found.id), as_json=as_json, profile=profile)


def remove_schedule(schedule: str, *, as_json: bool, profile: str | None) -> None:
    _change(schedule, lambda client, found: client.deployments.archive(found.id), as_json=as_json, profile=profile)


def run_schedule(schedule: str, *, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> DeploymentRun:
        return await client.deployments.run((await _resolve(client, schedule)).id)

    run = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        terminal_io.print_json(run.wire())
    elif run.session_id is not None:
        terminal_io.print_result(run.session_id)
        terminal_io.print_note(f"Watch it with: footplate attach {run.session_id}")
    elif run.error is not None:
        terminal_io.print_error("The run created no session.", run.error.message)
    if run.error is not None:
        raise typer.Exit(Exit.FAILED)


def list_runs(schedule: str, *, only_failed: bool, limit: int, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> tuple[list[DeploymentRun], list[ShownRun]]:
        deployment_id = (await _resolve(client, schedule)).id if schedule else None
        pages = client.deployment_runs.list(
            deployment_id=deployment_id, has_error=True if only_failed else None, limit=min(limit, _PAGE)
        )
        found = await _read(pages, limit)
        if as_json:
            return found, []
        names: dict[str, str] = {}
        if deployment_id is None:
            names = {one.id: one.name async for one in client.deployments.list(limit=_PAGE, include_archived=True)}
        return found, await _describe_runs(client, found, names)

    found, shown = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        terminal_io.print_json([run.wire() for run in found])
    else:
        schedule_views.print_runs(shown)


def find_local_timezone() -> str:
    """Returns the IANA name of this machine's time zone, or UTC if it has none."""
    if os.environ.get("TZ"):
        return os.environ["TZ"].removeprefix(":")
    try:
        _, found, name = str(_LOCAL_TIME.readlink()).partition("zoneinfo/")
    except OSError:
        return "UTC"
    return name if found else "UTC"


def _change(
    schedule: str,
    change: Callable[[AsyncFootplate, Deployment], Awaitable[Deployment]],
    *,
    as_json: bool,
    profile: str | None,
) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> Deployment:
        return await change(client, await _resolve(client, schedule))

    changed = run_with_client(work, profile=profile, as_json=as_json, options=_OPTIONS)
    if as_json:
        terminal_io.print_json(changed.wire())
    else:
        terminal_io.print_result(changed.id)
        terminal_io.print_note(schedule_views.describe_next(changed))


async def _resolve(client: AsyncFootplate, wanted: str) -> Deployment:
    """Finds a schedule by its ID or its name."""
    if wanted.startswith(f"{ids.DEPLOYMENT}_"):
        return await client.deployments.retrieve(wanted)
    found = [one async for one in client.deployments.list(limit=_PAGE) if one.name == wanted]
    if len(found) != 1:
        several = f"{len(found)} schedules have the name {wanted!r}." if found else f"No schedule is named {wanted!r}."
        raise ClientError(several, help_text="Use an ID: `footplate schedules ls` lists them.")
    return found[0]


async def _describe_runs(
    client: AsyncFootplate, runs: Sequence[DeploymentRun], names: Mapping[str, str]
) -> list[ShownRun]:
    """Adds what became of the session of each run. `names`: of the schedules, by their id."""
    at_once = asyncio.Semaphore(_REQUESTS_AT_ONCE)

    async def describe(run: DeploymentRun) -> ShownRun:
        name = names.get(run.deployment_id, "")
        if run.session_id is None:
            reason = run.error.message if run.error else ""
            return ShownRun(run, "skipped" if run.skipped else "[red]failed[/]", reason, name)
        async with at_once:
            try:
                session = await client.sessions.retrieve(run.session_id)
            except NotFound:
                return ShownRun(run, "deleted", schedule=name)
            outcome = activity_label(session)
            has_failed = "failed" in {session.activity and session.activity.state, session.end and session.end.outcome}
            turns = (await client.turns.list(session.id, limit=1).page()).data if has_failed else []
            return ShownRun(run, outcome, turns[0].result.error or "" if turns else "", name)

    return await asyncio.gather(*map(describe, runs))


async def _read(pages: Pages[Any], limit: int) -> list[Any]:
    found: list[Any] = []
    async for one in pages:
        found.append(one)
        if len(found) == limit:
            break
    return found


def _build_messages(prompt: str) -> list[dict[str, Any]]:
    return [{"type": "user.message", "content": [{"type": "text", "text": prompt}]}]


def _build_cron(expression: str, timezone: str) -> dict[Literal["type", "expression", "timezone"], str]:
    return {"type": "cron", "expression": expression, "timezone": timezone}
