"""Implements `footplate batch`: creates a batch from a file, follows it, and lists, cancels and repeats batches."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import typer

from footplate.cli.actions import projects as project_actions
from footplate.cli.actions.members import resolve_audience
from footplate.cli.actions.run import session_start
from footplate.cli.batch_file import InvalidBatchFile, load_jobs
from footplate.cli.connection import run_with_client
from footplate.cli.json_output_models import BatchDetail, BatchResult, BatchStatus, ErrorAnswer, ErrorDetail
from footplate.cli.profile import saved_ids
from footplate.cli.profile.server_profiles import Server
from footplate.cli.render import batch_views, terminal_io
from footplate.cli.render.batch_views import BatchProgressView, QuietBatchView
from footplate.cli.render.terminal_io import Exit
from footplate.client import AsyncFootplate, ClientError, NotFound, Unreachable
from footplate.client.batches import Batch, JobResult
from footplate.client.pagination import drop_none

_HELP: Final = "docs/batches.md describes the file."
_POLL_SECONDS: Final = 0.5
_PAGE: Final = 1000
_MAX_SHOWN: Final = 20
_FAILED: Final = ("failed", "expired")
_UNSUCCESSFUL: Final = (*_FAILED, "cancelled")
EXIT_CODES: Final[dict[BatchStatus, Exit]] = {
    "completed": Exit.DONE,
    "failed": Exit.FAILED,
    "cancelled": Exit.INTERRUPTED,
    "needs_action": Exit.NEEDS_ACTION,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOptions:
    name: str
    priority: str
    max_running: int | None


def run_batch(
    path: Path,
    request: session_start.RunRequest,
    wanted: BatchOptions,
    *,
    detach: bool,
    as_json: bool,
    profile: str | None,
) -> None:
    jobs = _load(path, as_json=as_json)

    async def create(client: AsyncFootplate, server: Server) -> Batch:
        audience = await resolve_audience(client, request.visibility, request.team)
        selected = await project_actions.select_projects(
            client, server, request.projects, include_uncommitted=request.include_uncommitted
        )
        shared = drop_none(project_ids=selected.ids or None, context=selected.context or None)
        return await session_start.retry_with_fresh_ids(
            client,
            lambda: _create_batch(client, server, request, wanted, [{**shared, **job} for job in jobs], audience),
        )

    _create_and_follow(create, detach=detach, as_json=as_json, profile=profile)


def retry_batch(batch: str, outcomes: list[str], *, detach: bool, as_json: bool, profile: str | None) -> None:
    async def create(client: AsyncFootplate, _server: Server) -> Batch:
        batch_id = await _resolve_batch_id(client, batch)
        chosen: Any = outcomes or None
        return await client.batches.retry(batch_id, outcomes=chosen)

    _create_and_follow(create, detach=detach, as_json=as_json, profile=profile)


def attach_batch(batch: str, *, as_json: bool, profile: str | None) -> None:
    async def find(client: AsyncFootplate, _server: Server) -> Batch:
        return await client.batches.retrieve(await _resolve_batch_id(client, batch))

    _create_and_follow(find, detach=False, as_json=as_json, profile=profile)


def list_batches(limit: int, *, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> list[Batch]:
        found = []
        async for batch in client.batches.list(limit=min(limit, 100)):
            found.append(batch)
            if len(found) == limit:
                break
        return found

    found = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        terminal_io.print_json([batch.wire() for batch in found])
    else:
        batch_views.print_batches(found)


def show_batch(batch: str, *, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> BatchDetail:
        batch_id = await _resolve_batch_id(client, batch)
        failures = await client.batches.results(batch_id, outcomes=_FAILED, limit=_MAX_SHOWN).page()
        waiting = await client.batches.jobs(batch_id, states=["waiting"], limit=_MAX_SHOWN).page()
        shown = await client.batches.retrieve(batch_id)
        return BatchDetail(batch=shown, waiting=[*waiting.data], failures=[*failures.data])

    detail = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        terminal_io.print_json(detail.model_dump(mode="json"))
        return
    batch_views.print_batch(detail.batch, detail.waiting, detail.failures)
    if detail.batch.counts.failed > len(detail.failures):
        terminal_io.print_note(f"All that failed: footplate batch results --failed {detail.batch.id}")


def print_results(batch: str, *, only_failed: bool, follow: bool, as_json: bool, profile: str | None) -> None:
    def show(result: JobResult) -> None:
        if as_json:
            terminal_io.print_json_line(result.wire())
        else:
            batch_views.print_result(result)

    async def work(client: AsyncFootplate, _server: Server) -> None:
        batch_id = await _resolve_batch_id(client, batch)
        last = 0
        while True:
            # Read before the results, so that none is missed if the batch ends now.
            has_ended = (await client.batches.retrieve(batch_id)).status == "ended"
            outcomes: Any = _UNSUCCESSFUL if only_failed else ()
            async for result in client.batches.results(batch_id, outcomes=outcomes, after=last, limit=_PAGE):
                show(result)
                last = result.number
            if has_ended or not follow:
                return
            await asyncio.sleep(_POLL_SECONDS)

    run_with_client(work, profile=profile, as_json=as_json)


def cancel_batch(batch: str, *, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> Batch:
        return await client.batches.cancel(await _resolve_batch_id(client, batch))

    cancelled = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        terminal_io.print_json(cancelled.wire())
    else:
        terminal_io.print_result(f"{cancelled.id} {cancelled.status}")


def _load(path: Path, *, as_json: bool) -> list[dict[str, Any]]:
    try:
        return load_jobs(path)
    except InvalidBatchFile as error:
        if as_json:
            detail = ErrorDetail(code="invalid_batch_file", title="Invalid batch file", message=str(error), help=_HELP)
            terminal_io.print_json_line(ErrorAnswer(error=detail, exit_code=Exit.USAGE).model_dump(mode="json"))
        else:
            terminal_io.print_error(str(error), _HELP)
        raise typer.Exit(Exit.USAGE) from None


async def _create_batch(
    client: AsyncFootplate,
    server: Server,
    request: session_start.RunRequest,
    wanted: BatchOptions,
    jobs: list[dict[str, Any]],
    audience: Any,
) -> Batch:
    """Creates a batch. Jobs that name no agent or environment get those of the command."""
    priority: Any = wanted.priority

    async def create(harness: str | None) -> Batch:
        agent, environment_id = await session_start.choose_agent_and_environment(client, server, request, harness)
        requests = [{"agent": agent, "environment_id": environment_id, **job} for job in jobs]
        return await client.batches.create(
            requests, name=wanted.name, priority=priority, max_running=wanted.max_running, **audience
        )

    return await session_start.create_with_default_harness(server, request, create)


def _create_and_follow(
    create: Callable[[AsyncFootplate, Server], Awaitable[Batch]], *, detach: bool, as_json: bool, profile: str | None
) -> None:
    async def work(client: AsyncFootplate, server: Server) -> int:
        batch = await create(client, server)
        saved_ids.remember_ids(client.base_url, batch=batch.id)
        if detach:
            _print_started(batch, as_json=as_json)
            return Exit.DONE
        view = QuietBatchView() if as_json else BatchProgressView()
        result = await _follow(client, batch, view)
        view.show_batch_result(result)
        return result.exit_code

    raise typer.Exit(run_with_client(work, profile=profile, as_json=as_json))


def _print_started(batch: Batch, *, as_json: bool) -> None:
    if as_json:
        terminal_io.print_json(batch.wire())
    else:
        terminal_io.print_result(batch.id)
        terminal_io.err().print(f"[dim]Watch it with: footplate batch attach {batch.id}[/]")


async def _follow(client: AsyncFootplate, batch: Batch, view: BatchProgressView) -> BatchResult:
    """Shows the progress until the batch has ended, or until all remaining jobs wait for a person or a client."""
    last = 0
    view.start(batch)
    try:
        while True:
            batch = await client.batches.retrieve(batch.id)
            view.update(batch)
            async for result in client.batches.results(batch.id, outcomes=_FAILED, after=last, limit=_PAGE):
                view.job_failed(result)
                last = result.number
            if (status := _find_status(batch)) is not None:
                return BatchResult(batch=batch, status=status, exit_code=EXIT_CODES[status])
            await asyncio.sleep(_POLL_SECONDS)
    except asyncio.CancelledError:
        view.stop()
        view.show_note("Detached. The jobs continue. Look at the batch, watch it again, or cancel it:")
        for command in ("show", "attach", "cancel"):
            view.show_note(f"  footplate batch {command} {batch.id}")
        raise
    except Unreachable:
        view.stop()
        view.show_note(f"The batch is not lost. Once the server is back, run: footplate batch attach {batch.id}")
        raise
    finally:
        view.stop()


def _find_status(batch: Batch) -> BatchStatus | None:
    """Returns the status once there is nothing to wait for."""
    counts = batch.counts
    if batch.status == "ended":
        return "failed" if counts.failed else "cancelled" if counts.cancelled else "completed"
    return "needs_action" if counts.waiting and not counts.pending and not counts.running else None


async def _resolve_batch_id(client: AsyncFootplate, wanted: str) -> str:
    """Resolves `last` to the batch last used from this machine, or else to the newest."""
    if wanted != "last":
        return wanted
    known = saved_ids.recall_id(client.base_url, "batch")
    if known:
        try:
            return (await client.batches.retrieve(known)).id
        except NotFound:
            saved_ids.forget_ids(client.base_url, "batch")
    newest = (await client.batches.list(limit=1).page()).data
    if not newest:
        raise ClientError("There are no batches yet.", help_text="Start one: footplate batch run jobs.jsonl")
    return newest[0].id
