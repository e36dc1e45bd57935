"""Where the command line starts. Completion of live ids has a way of its own, past all that is slow to load."""

import os
import sys


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal of another encoding gets a replacement, not a crash
            stream.reconfigure(errors="replace")
    if (asked := os.environ.get("_FOOTPLATE_COMPLETE", "")).startswith("complete_"):
        from footplate.cli import completion

        if completion.answered(asked.removeprefix("complete_"), os.environ):
            return
    from footplate.cli.app import app

    app(prog_name="footplate")
