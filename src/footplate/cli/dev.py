"""`footplate dev`: the whole product on this machine in one command, and none of it left when it ends.

Nothing is restarted silently: if a part dies, the command says which and where its log is, stops the rest and fails.
Killed itself, it leaves no process (the kernel ends them, see `stack.spawn`) and finds its state at the next start.
"""

import asyncio
import os
import signal
from collections.abc import Sequence
from contextlib import AsyncExitStack
from http import HTTPStatus
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from footplate.cli import local, output
from footplate.cli.children import api_program, worker_program
from footplate.config import Settings, default_data_dir
from footplate.domain.errors import Conflict
from footplate.stack import Part, PartFailed, Stack
from footplate.stack.ports import is_free
from footplate.stack.program import http_status


def command(
    port: Annotated[int, typer.Option(help="Port of the API.", envvar="FOOTPLATE_PORT")] = 8700,
    workers: Annotated[int, typer.Option(min=1, help="How many workers to start.")] = 1,
    data_dir: Annotated[
        Path | None,
        typer.Option(help="Where all state is kept. [XDG_DATA_HOME/footplate]", envvar="FOOTPLATE_DATA_DIR"),
    ] = None,
    database_url: Annotated[
        str | None,
        typer.Option(help="Use this PostgreSQL instead of starting one.", envvar="FOOTPLATE_DATABASE_URL"),
    ] = None,
    redis_url: Annotated[
        str | None, typer.Option(help="Use this Redis instead of starting one.", envvar="FOOTPLATE_REDIS_URL")
    ] = None,
    temporal: Annotated[
        str | None,
        typer.Option(help="Use the Temporal at this host:port instead.", envvar="FOOTPLATE_TEMPORAL_ADDRESS"),
    ] = None,
) -> None:
    """Start everything on this machine: PostgreSQL, Redis, Temporal, the API and workers. Ctrl-C stops it all."""
    directory = (data_dir or default_data_dir()).absolute()
    stack = Stack(directory, database_url=database_url, redis_url=redis_url, temporal_address=temporal)
    settings = Settings(data_dir=directory, port=port)
    output.run(_until_told_to_stop(stack, settings, workers))


async def _until_told_to_stop(stack: Stack, settings: Settings, workers: int) -> None:
    """SIGINT and SIGTERM are the normal end: everything is stopped in order and the exit code is 0."""
    serving = asyncio.create_task(_serve(stack, settings, workers))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, serving.cancel)
    try:
        await serving
    except asyncio.CancelledError:
        output.err().print("Stopped. The state is kept for the next start.")


async def _serve(stack: Stack, settings: Settings, workers: int) -> None:
    from footplate import wiring

    if not is_free(settings.port, settings.host):
        raise Conflict(
            f"Port {settings.port} is taken.", help_text="Choose another with --port, or end what listens there."
        )
    console = output.err()
    async with AsyncExitStack() as ending:
        console.print("Starting PostgreSQL, Redis and Temporal …")
        await ending.enter_async_context(stack)
        ending.callback(local.withdraw, settings.data_dir)
        settings = settings.model_copy(
            update={
                "database_url": stack.settings.database_url,
                "redis_url": stack.settings.redis_url,
                "temporal_address": stack.settings.temporal_address,
            }
        )
        await wiring.migrate(settings)
        console.print("Starting the API and the workers …")
        api = api_program(stack, settings)
        programs: list[Part] = [api, *(worker_program(stack, settings, number) for number in range(workers))]
        for program in programs:
            ending.push_async_callback(program.stop)
            await program.start()
        base_url = f"http://{settings.host}:{settings.port}"
        _publish(stack, settings, base_url)
        _report(stack, programs, base_url, await _key(settings))
        await _first_death([*stack.parts, *programs])


async def _key(settings: Settings) -> str:
    """The key of the first start, as long as the API knows it: the database may be another one by now."""
    from footplate import wiring

    secret = local.key(settings.data_dir)
    if secret is None or await _is_refused(settings, secret):
        secret = await wiring.bootstrap_key(settings)
        local.keep_key(settings.data_dir, secret)
    return secret


async def _is_refused(settings: Settings, secret: str) -> bool:
    status = await http_status(settings.host, settings.port, "/v1/agents?limit=1", {"x-api-key": secret})
    return status == HTTPStatus.UNAUTHORIZED


async def _first_death(parts: Sequence[Part]) -> None:
    deaths = {asyncio.create_task(part.wait()): part for part in parts}
    try:
        ended, _ = await asyncio.wait(deaths, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for waiting in deaths:
            waiting.cancel()
    first = next(iter(ended))
    raise _died(deaths[first], first.result())


def _died(part: Part, code: int) -> PartFailed:
    how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    return part.failure(f"{how}; everything else was stopped")


def _publish(stack: Stack, settings: Settings, base_url: str) -> None:
    running = local.Running(
        pid=os.getpid(),
        database_url=stack.settings.database_url,
        redis_url=stack.settings.redis_url,
        temporal_address=stack.settings.temporal_address,
        base_url=base_url,
    )
    local.publish(settings.data_dir, running)


def _report(stack: Stack, programs: Sequence[Part], base_url: str, secret: str) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("Part", "Address", "Pid", "Log"):
        table.add_column(heading, overflow="fold")
    for part in [*stack.parts, *programs]:
        table.add_row(part.title, part.address, str(part.pid), part.log.name)
    for title, own in (("PostgreSQL", stack.postgres), ("Redis", stack.redis), ("Temporal", stack.temporal)):
        if own is None:
            table.add_row(title, "as given", "", "")
    console = output.out()
    console.print(table)
    console.print(f"\nLogs     {stack.directory / 'logs'}")
    console.print(f"API      [bold]{base_url}[/]")
    console.print(f"API key  [bold]{secret}[/]")
    console.print('\nIn another shell:\n  eval "$(footplate env)"')
    console.print('  curl -H "x-api-key: $FOOTPLATE_API_KEY" $FOOTPLATE_BASE_URL/v1/agents')
    console.print("\nCtrl-C stops everything.")
