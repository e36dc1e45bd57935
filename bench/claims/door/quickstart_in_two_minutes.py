"""Two minutes after the download, somebody new sees an agent's words stream by: the README's commands, nothing else.

At full size in a bare folder with the system's Python and the built wheel; the download is measured apart. A quick run
uses the environment that is there, with a fresh data directory, and leaves the story after its first word.
"""

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from bench.prove.figure import Figure, require, time_limit
from bench.support.newcomer import installing, providers
from bench.support.newcomer.desk import Desk, Watched, stop
from bench.support.newcomer.installing import Installed
from bench.support.newcomer.page import ROOT, FirstScreen, first_screen
from footplate.domain.json import JsonObject
from footplate.stack.ports import free_port

_FIRST: Final = 120.0
_SECOND: Final = 10.0
_STORY: Final = ROOT / "src" / "footplate" / "cli" / "story_scripts" / "demo.json"


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every proof has this shape
    page = first_screen()
    with tempfile.TemporaryDirectory(prefix="footplate-") as directory:
        scratch = Path(directory)
        folder = scratch / "bare"
        folder.mkdir()
        desk = Desk(folder, {"FOOTPLATE_PORT": str(free_port())})
        installed = None
        if quick:
            await desk.run(f"export PATH='{Path(sys.executable).parent}':$PATH")
        else:
            installed = await installing.install(page, desk, await installing.build(page, scratch), scratch)
        return await _prove(page, desk, installed)


async def _prove(page: FirstScreen, desk: Desk, installed: Installed | None) -> Figure:
    first, story = await _start_and_run(page, desk, leave=installed is None)
    if installed:
        _told(story)
        _mended(desk.folder)
    second, _ = await _start_and_run(page, desk, leave=True)
    models = await providers.used(page, desk, quick=installed is None)
    total = first + (installed.install_seconds if installed else 0.0)
    return Figure(
        text=f"{_described(installed)}; from `footplate dev` to the first streamed word {first:.1f} s, "
        f"{total:.0f} s with the installation (under {_FIRST:.0f}); on the second start {second:.1f} s (under "
        f"{_SECOND:.0f}); {'the story was killed and went on; ' if installed else ''}"
        f"with a provider's key the same commands asked {' and '.join(models)}",
        holds=total < time_limit(_FIRST, quick=installed is None)
        and second < time_limit(_SECOND, quick=installed is None),
        details={
            "first_seconds": round(first, 2),
            "second_seconds": round(second, 2),
            **(_measured(installed) if installed else {}),
        },
    )


def _measured(installed: Installed) -> JsonObject:
    return {
        "install_seconds": round(installed.install_seconds, 1),
        "download_seconds": round(installed.download_seconds, 1),
        "download_mb": round(installed.download_mb, 1),
        "packages": installed.packages,
    }


def _described(installed: Installed | None) -> str:
    if installed is None:
        return "in the environment that was there (a full run installs the wheel), with a fresh data directory"
    return (
        f"download of {installed.packages} packages, {installed.download_mb:.0f} MB, took "
        f"{installed.download_seconds:.0f} s; without it: venv and installation {installed.install_seconds:.1f} s"
    )


async def _start_and_run(page: FirstScreen, desk: Desk, *, leave: bool = False) -> tuple[float, Watched]:
    """Seconds from the start of the server to the first word of the agent on the terminal of `footplate run`."""
    started = time.monotonic()
    dev = await desk.start(page.serve, page.ready)
    try:
        watched = await desk.watch(page.run, _first_word(), leave=leave)
    finally:
        await stop(dev)
    return watched.first - started, watched


def _first_word() -> str:
    story = json.loads(_STORY.read_text())
    return str(story["scripts"]["default"]["replies"][0][0]["text"].split()[0])


def _told(story: Watched) -> None:
    """Reads, edits, runs a test, is killed and goes on."""
    words = " ".join(story.text.split())
    for wanted in ("  read ", "  edit ", "  bash "):
        require(holds=wanted in story.text, otherwise=f"the story has no{wanted}: {story.text}")
    for wanted in ("kills my worker", "The tests pass.", "completed", "2 attempts"):
        require(holds=wanted in words, otherwise=f"the story lacks {wanted!r}: {story.text}")
    require(holds=story.code == 0, otherwise=f"`footplate run` ended with {story.code}: {story.text}")


def _mended(folder: Path) -> None:
    """It worked where it was called: the newcomer finds the mended file in that directory."""
    found = [file.read_text() for file in folder.glob("*/middle.py")]
    require(holds=len(found) == 1 and "~half" in found[0], otherwise=f"what the story mended is not there: {found}")
