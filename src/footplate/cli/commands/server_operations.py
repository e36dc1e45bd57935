"""Defines the commands for operators: dev, api, worker, migrate, doctor, gc, env and version. Each command imports its
implementation only when it runs, so that every command starts quickly.
"""

import os
from pathlib import Path
from typing import Annotated

import typer

from footplate.cli.render import terminal_io


def dev(
    port: Annotated[int, typer.Option(metavar="PORT", help="Port of the API.", envvar="FOOTPLATE_PORT")] = 8700,
    workers: Annotated[int, typer.Option(min=1, metavar="N", help="Number of workers to start.")] = 1,
    scripted: Annotated[
        str | None,
        typer.Option(
            metavar="SCENARIO",
            help="Use a scripted model, which needs no API key: `demo`, or a script file.",
        ),
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Directory for all state.  [default: XDG_DATA_HOME/footplate]",
            envvar="FOOTPLATE_DATA_DIR",
        ),
    ] = None,
    database_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Use this PostgreSQL server instead of starting one.", envvar="FOOTPLATE_DATABASE_URL"
        ),
    ] = None,
    redis_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Use this Redis server instead of starting one.", envvar="FOOTPLATE_REDIS_URL"
        ),
    ] = None,
    temporal: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Use the Temporal server at this host:port instead of starting one.",
            envvar="FOOTPLATE_TEMPORAL_ADDRESS",
        ),
    ] = None,
    open_dashboard: Annotated[
        bool, typer.Option("--open", help="Open the dashboard in your browser, signed in.")
    ] = False,
) -> None:
    """Start all services on this machine: PostgreSQL, Redis, Temporal, the API and workers. Ctrl-C stops them."""
    configure_logging()
    from footplate.cli.dev import launcher as implementation

    implementation.run_dev(
        port=port,
        workers=workers,
        scripted=scripted,
        data_dir=data_dir,
        database_url=database_url,
        redis_url=redis_url,
        temporal=temporal,
        opens=open_dashboard,
    )


def api(
    host: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Address to listen on.  [env var: FOOTPLATE_HOST]")
    ] = None,
    port: Annotated[
        int | None, typer.Option(metavar="PORT", help="Port to listen on.  [env var: FOOTPLATE_PORT]")
    ] = None,
) -> None:
    """Serve the HTTP API. It is stateless: you can run any number of servers behind a load balancer."""
    configure_logging()
    from footplate import wiring
    from footplate.cli.profile import dev_server

    given = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
    terminal_io.run_server(wiring.run_api(dev_server.load_settings().model_copy(update=given)))


def worker() -> None:
    """Run turns. You can add workers at any time. On SIGTERM, a worker hands its turns over to the others."""
    configure_logging()
    from footplate import wiring
    from footplate.cli.profile import dev_server

    terminal_io.run_server(wiring.run_worker(dev_server.load_settings()))


def migrate(
    force: Annotated[
        bool, typer.Option("--force", help="Migrate even if it breaks processes that run older code.")
    ] = False,
) -> None:
    """Migrate the database to the schema of this version. Safe to run at any time and concurrently."""
    configure_logging()
    from footplate import wiring
    from footplate.cli.profile import dev_server

    terminal_io.run_async(wiring.migrate(dev_server.load_settings(), force=force))
    terminal_io.err().print("The database schema is up to date.")


def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Check the services, programs and settings that sessions need. Exits with 1 if anything essential is missing."""
    configure_logging()
    from footplate.cli.actions import doctor as implementation

    implementation.run_doctor(as_json=as_json)


def gc(
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Only show what would be removed, and why the rest is kept."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Remove unused objects from the object store. Safe to run at any time. Workers do the same once a day."""
    configure_logging()
    from footplate.cli.actions import gc as gc_action

    gc_action.run_gc(dry=dry_run, as_json=as_json)


def env() -> None:
    """Print shell commands that set the address and API key of a running `footplate dev`: `eval "$(footplate env)"`."""
    from footplate.cli.profile import dev_server, xdg_paths

    directory = xdg_paths.data_dir()
    running, secret = dev_server.find_dev_server(directory), dev_server.load_api_key(directory)
    if running is None or secret is None:
        terminal_io.err().print(
            f"No `footplate dev` is running with the data directory {terminal_io.quote(str(directory))}. "
            "Start one first."
        )
        raise typer.Exit(terminal_io.Exit.FAILED)
    set_one = "$env:{}='{}'" if os.name == "nt" else "export {}={}"
    terminal_io.print_machine_text(set_one.format("FOOTPLATE_BASE_URL", running.base_url))
    terminal_io.print_machine_text(set_one.format("FOOTPLATE_API_KEY", secret))


def version() -> None:
    """Print the version."""
    from footplate import __version__

    terminal_io.print_result(__version__)


def configure_logging() -> None:
    from footplate import telemetry

    telemetry.configure_logging()
