"""The commands and their help. Exit codes: 0 done, 1 failed (the text says why), 2 the command line is wrong."""

from importlib.metadata import version as installed_version
from typing import Annotated

import typer

from footplate.cli import dev, doctor, keys, local, output
from footplate.telemetry import configure_logging

app = typer.Typer(
    name="footplate",
    epilog="Exit codes: 0 done, 1 failed (the text says why), 2 the command line is wrong. NO_COLOR is honoured.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command("dev")(dev.command)
app.command("doctor")(doctor.command)
app.add_typer(keys.app, name="api-keys")


@app.callback()
def prepare() -> None:
    """The open, self-hosted home for coding-agent sessions."""
    configure_logging()


@app.command()
def api(
    host: Annotated[str | None, typer.Option(help="Address to listen on. [FOOTPLATE_HOST]")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on. [FOOTPLATE_PORT]")] = None,
) -> None:
    """Serve the HTTP API. Stateless: run as many as you like behind a load balancer."""
    from footplate import wiring

    given = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
    output.serve(wiring.run_api(local.settings().model_copy(update=given)))


@app.command()
def worker() -> None:
    """Run turns. Add workers freely; SIGTERM hands the running turns over to the others."""
    from footplate import wiring

    output.serve(wiring.run_worker(local.settings()))


@app.command()
def migrate() -> None:
    """Bring the database to the schema of this version. Safe to run at any time, from many places at once."""
    from footplate import wiring

    output.run(wiring.migrate(local.settings()))
    output.err().print("The database has the schema of this version.")


@app.command()
def env() -> None:
    """Print where a running `footplate dev` is and its API key, for `eval "$(footplate env)"`."""
    directory = local.settings().data_dir
    running, secret = local.find(directory), local.key(directory)
    if running is None or secret is None:
        output.err().print(f"No `footplate dev` runs with the data directory {directory}. Start one first.")
        raise typer.Exit(output.Exit.FAILED)
    print(f"export FOOTPLATE_BASE_URL={running.base_url}")
    print(f"export FOOTPLATE_API_KEY={secret}")


@app.command()
def version() -> None:
    """Print the version."""
    print(installed_version("footplate"))


def main() -> None:
    app()
