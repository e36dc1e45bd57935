"""The commands and their help. The exit codes are listed in docs/cli.md."""

import sys

import typer

from footplate.cli import keys, serving

app = typer.Typer(
    name="footplate",
    help="The open, self-hosted home for coding-agent sessions.",
    epilog="Exit codes: 0 done, 1 failed (the text says why), 2 the command line is wrong. NO_COLOR is honoured.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for command in (serving.dev, serving.doctor, serving.env, serving.api, serving.worker, serving.migrate):
    app.command(rich_help_panel="Server")(command)
app.add_typer(keys.app, name="api-keys", rich_help_panel="Server")
app.command()(serving.version)


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal of another encoding gets a replacement, not a crash
            stream.reconfigure(errors="replace")
    app()
