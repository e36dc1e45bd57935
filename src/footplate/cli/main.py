"""Entry point of the `footplate` command. Shell completion of ids skips all slow imports."""

import os
import sys


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # unsupported characters are replaced instead of raising an error
            stream.reconfigure(errors="replace")
    if (instruction := os.environ.get("_FOOTPLATE_COMPLETE", "")).startswith("complete_"):
        from footplate.cli import completion

        if completion.print_completions(instruction.removeprefix("complete_"), os.environ):
            return
    sys.exit(_run())


def _run() -> int:
    import typer

    from footplate.cli.app import app

    try:
        code = app(prog_name="footplate", standalone_mode=False)
    except typer.TyperException as error:
        from footplate.cli.render import usage_errors

        usage_errors.report_usage_error(error, sys.argv)
        return error.exit_code
    except typer.Abort:
        from footplate.cli.render import terminal_io

        terminal_io.print_error("Cancelled. Nothing was changed.")
        return 1
    except ModuleNotFoundError as error:
        from footplate.cli.render import missing_packages

        if not missing_packages.report_missing_package(error, sys.argv):
            raise
        return 1
    except Exception as error:
        from footplate.cli.render import terminal_io
        from footplate.domain.errors import FootplateError

        if not isinstance(error, FootplateError):
            raise
        terminal_io.print_footplate_error(error)
        return terminal_io.Exit.FAILED
    return code if isinstance(code, int) else 0
