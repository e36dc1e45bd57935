"""Implements `footplate dev`: starts all services on this machine and stops them when the command ends.

If a service dies, the command reports it and restarts it (`supervision.py`). If that does not help, it stops the other
services and fails. If the command itself is killed, the kernel ends its child processes (see `stack.child_command`).
The next start continues with the same data.
"""

import asyncio
import os
import signal
import webbrowser
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from http import HTTPStatus
from pathlib import Path
from typing import Final

from rich.table import Table

from footplate.cli.defaults import DEFAULT_MODEL
from footplate.cli.dev import demo_crash, scenario_lookup, supervision
from footplate.cli.dev.child_process_definitions import create_api_program, create_scripted_model, create_worker_program
from footplate.cli.profile import dev_server, dev_server_check
from footplate.cli.render import terminal_io
from footplate.cli.render.terminal_io import quote
from footplate.config import Settings, default_data_dir
from footplate.domain.errors import Conflict
from footplate.stack import Service, Stack
from footplate.stack.free_ports import LOOPBACK, find_free_port, is_port_free
from footplate.stack.services.python_service import http_status

_OPENAI_MODEL: Final = "openai:gpt-5.1"
_ALL_ADDRESSES: Final = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - compared, not listened on


def run_dev(
    *,
    port: int,
    workers: int,
    scripted: str | None,
    data_dir: Path | None,
    database_url: str | None,
    redis_url: str | None,
    temporal: str | None,
    opens: bool,
) -> None:
    directory = (data_dir or default_data_dir()).absolute()
    stack = Stack(directory, database_url=database_url, redis_url=redis_url, temporal_address=temporal)
    settings = dev_server.read_settings(data_dir=directory, port=port)
    terminal_io.run_async(_serve_until_signal(stack, settings, workers, scripted, opens=opens))


async def _serve_until_signal(
    stack: Stack, settings: Settings, workers: int, scripted: str | None, *, opens: bool
) -> None:
    """Serves until SIGINT or SIGTERM, which stop everything in order with exit code 0."""
    serving = asyncio.create_task(
        _serve(stack, settings, workers, scenario_lookup.find_scenario(scripted) if scripted else None, opens=opens)
    )
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, serving.cancel)
    try:
        await serving
    except asyncio.CancelledError:
        terminal_io.err().print("Stopped. The state is saved for the next start.")


async def _serve(stack: Stack, settings: Settings, workers: int, scenario: Path | None, *, opens: bool) -> None:
    from footplate import wiring
    from footplate.wiring.shared_components import create_data_directory

    create_data_directory(settings)
    if (running := dev_server.find_dev_server(settings.data_dir)) is not None:
        raise Conflict(
            f"A `footplate dev` already runs with the data directory {settings.data_dir}: process {running.pid}, at "
            f"{running.base_url}.",
            help_text="Use it: `footplate run` finds it. To start another one, choose --data-dir and --port.",
        )
    if not is_port_free(settings.port, settings.host):
        raise Conflict(
            f"Port {settings.port} is in use.",
            help_text="Choose another with --port, or stop the process that uses it.",
        )
    console = terminal_io.err()
    settings = await _choose_environment(settings)
    async with AsyncExitStack() as exit_stack:
        console.print("Starting PostgreSQL, Redis and Temporal …")
        await exit_stack.enter_async_context(stack)
        exit_stack.callback(dev_server.withdraw_dev_server, settings.data_dir)
        _warn_of_exposure(stack)
        settings = settings.model_copy(
            update={
                "database_url": stack.settings.database_url,
                "redis_url": stack.settings.redis_url,
                "temporal_address": stack.settings.temporal_address,
                "metrics_address": settings.metrics_address or f"{LOOPBACK}:{find_free_port()}",
            }
        )
        await wiring.migrate(settings)
        await wiring.check_services(settings)
        console.print("Starting the API and the workers …")
        model, endpoint = create_scripted_model(stack, scenario) if scenario else (None, {})
        programs: list[Service] = [
            *([model] if model else []),
            create_api_program(stack, settings),
            *(create_worker_program(stack, settings, number, endpoint) for number in range(workers)),
        ]
        for program in programs:
            exit_stack.push_async_callback(program.stop)
            await program.start()
        base_url = f"http://{settings.host}:{settings.port}"
        api = next(program for program in programs if program.title == "API")

        def publish() -> None:
            _publish_dev_server(stack, settings, base_url, api.pid or 0, scenario)

        publish()
        secret = await _ensure_api_key(settings)
        _print_services(stack, programs, base_url, secret)
        await _show_dashboard(settings, secret, opens=opens)
        if settings.metrics_address != "off":
            terminal_io.out().print(f"Metrics  http://{settings.metrics_address}/metrics {_metrics_access(settings)}")
        _print_next_steps(settings, scenario)
        demo_exits = {}
        if model and _kills_demo_worker(scenario, workers):
            demo_exits[programs[-1]] = demo_crash.wait_and_kill_once(
                programs[-1], model.address, endpoint["FOOTPLATE_ANTHROPIC_API_KEY"], console.print
            )
        try:
            await _keep_all_running([*stack.services, *programs], demo_exits, publish)
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None


async def _choose_environment(settings: Settings) -> Settings:
    """Falls back to no sandbox on a machine that cannot create one, unless the user asked for a sandbox explicitly."""
    from footplate.environments.sandbox.probe import NoSandbox
    from footplate.wiring.environment_backend import find_sandbox

    if settings.environment != "sandbox":
        return settings
    try:
        await find_sandbox(settings)
    except NoSandbox as error:
        if "environment" in settings.model_fields_set:
            raise
        terminal_io.err().print(
            f"[yellow]Agents will not be sandboxed:[/] {quote(error.message)} See `footplate doctor`."
        )
        return settings.model_copy(update={"environment": "unsandboxed"})
    return settings


def _warn_of_exposure(stack: Stack) -> None:
    if stack.temporal is None or not (reason := stack.temporal.exposure):
        return
    terminal_io.err().print(
        "[yellow]Other users of this machine can reach Temporal,[/] which has no authentication: they can list "
        f"sessions, stop turns and pause the sweep. {quote(reason)} Allow user namespaces (docs/listeners.md), or do "
        "not run `footplate dev` on a shared machine."
    )


async def _show_dashboard(settings: Settings, secret: str, *, opens: bool) -> None:
    """Prints a link that signs one browser on this machine in, once, and opens it if the user wants that."""
    from footplate.client import AsyncFootplate, ClientError

    # The link works only at a loopback name, also if the API listens on all addresses.
    host = LOOPBACK if settings.host in _ALL_ADDRESSES else settings.host
    try:
        async with AsyncFootplate(f"http://{host}:{settings.port}", secret) as client:
            url = (await client.sign_in.create_link()).url
    except ClientError as error:
        terminal_io.err().print(f"[yellow]There is no link to the dashboard:[/] {quote(error.message)}")
        return
    terminal_io.out().print(f"Dashboard  [bold]{url}[/]  (signs in once; another link: footplate dashboard)")
    if opens:
        await asyncio.to_thread(webbrowser.open, url)


async def _ensure_api_key(settings: Settings) -> str:
    """Returns the API key of the first start, or a new one if the API rejects it because the database was replaced."""
    from footplate import wiring

    secret = dev_server.load_api_key(settings.data_dir)
    if secret is None or await _is_refused(settings, secret):
        secret = await wiring.bootstrap_key(settings)
        dev_server.save_api_key(settings.data_dir, secret)
    return secret


async def _is_refused(settings: Settings, secret: str) -> bool:
    status = await http_status(settings.host, settings.port, "/v1/agents?limit=1", {"x-api-key": secret})
    return status == HTTPStatus.UNAUTHORIZED


def _kills_demo_worker(scenario: Path | None, workers: int) -> bool:
    """The demo kills its worker only if there is just one: otherwise it is unknown which one runs the turn."""
    return scenario_lookup.is_demo(scenario) and workers == 1


async def _keep_all_running(
    services: Sequence[Service], demo_exits: Mapping[Service, Awaitable[int]], on_restart: Callable[[], None]
) -> None:
    """Restarts services that die. Raises `ServiceFailed` when one cannot be kept running."""

    def notify(text: str) -> None:
        terminal_io.err().print(quote(text))

    async with asyncio.TaskGroup() as group:
        for service in services:
            group.create_task(
                supervision.keep_running(
                    service, notify=notify, on_restart=on_restart, first_exit=demo_exits.get(service)
                )
            )


def _default_model(settings: Settings) -> str:
    """Returns the default model of the provider whose key is set. Only this process knows which keys are set."""
    keys = {DEFAULT_MODEL: settings.anthropic_api_key, _OPENAI_MODEL: settings.openai_api_key}
    return next((model for model, key in keys.items() if key is not None), DEFAULT_MODEL)


def _publish_dev_server(stack: Stack, settings: Settings, base_url: str, api_pid: int, scenario: Path | None) -> None:
    running = dev_server.RunningDevServer(
        pid=os.getpid(),
        started=dev_server_check.start_time(os.getpid()),
        api_pid=api_pid,
        database_url=stack.settings.database_url,
        redis_url=stack.settings.redis_url,
        temporal_address=stack.settings.temporal_address,
        base_url=base_url,
        model=scenario_lookup.SCRIPTED_MODEL if scenario else _default_model(settings),
        providers="scripted model" if scenario else ", ".join(settings.model_providers),
    )
    dev_server.publish_dev_server(settings.data_dir, running)
    if dev_server.find_dev_server(settings.data_dir) is None:
        terminal_io.err().print(
            f"[yellow]Other commands cannot find this server:[/] `dev.json` in "
            f"{quote(str(settings.data_dir))} is not trusted because of the directory's owner or permissions. "
            "Make yourself its owner, set its mode to 700 and start again, or set FOOTPLATE_BASE_URL."
        )


def _print_services(stack: Stack, programs: Sequence[Service], base_url: str, secret: str) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("Service", "Address", "Pid", "Log"):
        table.add_column(heading, overflow="fold")
    for service in [*stack.services, *programs]:
        table.add_row(service.title, service.address, str(service.pid), service.log.name)
    for title, own in (("PostgreSQL", stack.postgres), ("Redis", stack.redis), ("Temporal", stack.temporal)):
        if own is None:
            table.add_row(title, "external", "", "")
    console = terminal_io.out()
    terminal_io.print_table(table)
    console.print(f"\nLogs     {stack.directory / 'logs'}")
    console.print(f"API      [bold]{base_url}[/]")
    console.print(f"API key  [bold]{secret}[/]")


def _metrics_access(settings: Settings) -> str:
    if settings.metrics_token is None:
        return f"(bearer token in {settings.data_dir / 'metrics-token'})"
    return "(no token needed)" if settings.metrics_token.get_secret_value() == "open" else "(FOOTPLATE_METRICS_TOKEN)"


def _print_next_steps(settings: Settings, scenario: Path | None) -> None:
    console = terminal_io.out()
    if scenario is None and not settings.model_providers and settings.model_connections is None:
        console.print("\n[yellow]No model can be called:[/] neither ANTHROPIC_API_KEY nor OPENAI_API_KEY is set here.")
        console.print("Set one and start again, or try the demo without a key: footplate dev --scripted demo")
    prompt = "Make the tests pass" if scenario else "Write a haiku into haiku.txt and read it to me"
    console.print(f'\nIn another shell:\n  [bold]footplate run "{prompt}"[/]')
    console.print('  eval "$(footplate env)"   sets FOOTPLATE_BASE_URL and FOOTPLATE_API_KEY for other programs')
    console.print("\nCtrl-C stops everything.")
