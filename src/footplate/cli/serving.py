"""The commands that run the product's own processes. What they need they import when they are called."""

import os
from pathlib import Path
from typing import Annotated

import typer

from footplate.cli import output


def dev(
    port: Annotated[int, typer.Option(metavar="PORT", help="Port of the API.", envvar="FOOTPLATE_PORT")] = 8700,
    workers: Annotated[int, typer.Option(min=1, metavar="N", help="How many workers to start.")] = 1,
    scripted: Annotated[
        str | None,
        typer.Option(
            metavar="STORY",
            help="Needs no API key: a scripted model plays its part. `demo`, or a script file of your own.",
        ),
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Where all state is kept.  [default: XDG_DATA_HOME/footplate]",
            envvar="FOOTPLATE_DATA_DIR",
        ),
    ] = None,
    database_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Use this PostgreSQL instead of starting one.", envvar="FOOTPLATE_DATABASE_URL"
        ),
    ] = None,
    redis_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Use this Redis instead of starting one.", envvar="FOOTPLATE_REDIS_URL"),
    ] = None,
    temporal: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="Use the Temporal at this host:port instead.", envvar="FOOTPLATE_TEMPORAL_ADDRESS"
        ),
    ] = None,
) -> None:
    """Start everything on this machine: PostgreSQL, Redis, Temporal, the API and workers. Ctrl-C stops it all."""
    _log()
    from footplate.cli import dev as implementation

    implementation.start(
        port=port,
        workers=workers,
        scripted=scripted,
        data_dir=data_dir,
        database_url=database_url,
        redis_url=redis_url,
        temporal=temporal,
    )


def api(
    host: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Address to listen on.  [env var: FOOTPLATE_HOST]")
    ] = None,
    port: Annotated[
        int | None, typer.Option(metavar="PORT", help="Port to listen on.  [env var: FOOTPLATE_PORT]")
    ] = None,
) -> None:
    """Serve the HTTP API. Stateless: run as many as you like behind a load balancer."""
    _log()
    from footplate import wiring
    from footplate.cli import local

    given = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
    output.serve(wiring.run_api(local.settings().model_copy(update=given)))


def worker() -> None:
    """Run turns. Add workers freely; SIGTERM hands the running turns over to the others."""
    _log()
    from footplate import wiring
    from footplate.cli import local

    output.serve(wiring.run_worker(local.settings()))


def migrate() -> None:
    """Bring the database to the schema of this version. Safe to run at any time, from many places at once."""
    _log()
    from footplate import wiring
    from footplate.cli import local

    output.run(wiring.migrate(local.settings()))
    output.err().print("The database has the schema of this version.")


def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False) -> None:
    """Check everything that a session needs. Exit code 1 if anything essential is missing."""
    _log()
    from footplate.cli import doctor as implementation

    implementation.report(as_json=as_json)


def gc(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Remove nothing: only tell what would go, and why the rest is kept.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Remove what the object store has and nobody needs. Workers do the same once a day; safe at any time."""
    _log()
    from footplate.cli import collecting

    collecting.report(dry=dry_run, as_json=as_json)


def env() -> None:
    """Print where a running `footplate dev` is and its API key, for `eval "$(footplate env)"`."""
    from footplate.cli import local, places

    directory = places.data_dir()
    running, secret = local.find(directory), local.key(directory)
    if running is None or secret is None:
        output.err().print(
            f"No `footplate dev` runs with the data directory {output.quote(str(directory))}. Start one first."
        )
        raise typer.Exit(output.Exit.FAILED)
    set_one = "$env:{}='{}'" if os.name == "nt" else "export {}={}"
    output.print_machine_text(set_one.format("FOOTPLATE_BASE_URL", running.base_url))
    output.print_machine_text(set_one.format("FOOTPLATE_API_KEY", secret))


def version() -> None:
    """Print the version."""
    from importlib.metadata import version as installed_version

    output.print_result(installed_version("footplate"))


def _log() -> None:
    from footplate.telemetry import configure_logging

    configure_logging()
