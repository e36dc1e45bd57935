"""Failpoints: named points in the code where a test can kill, suspend or delay this process.

They are off unless `FOOTPLATE_FAILPOINTS` names a directory when the process starts. A test arms a failpoint by writing
a file with its name, which contains `kill`, `stop` or a number of seconds. The first process that reaches the failpoint
removes the file, so exactly one process is affected.
"""

import asyncio
import os
import signal
from pathlib import Path
from typing import Final

# Failpoints of a turn, in a worker.
POINTS: Final = (
    "before_intent",
    "after_intent",
    "in_tool",
    "before_result_commit",
    "after_result_commit",
    "before_turn_commit",
    "after_turn_commit",
    "before_publish",
)

APPROVAL_POINTS: Final = ("after_ask",)

TREE_POINTS: Final = ("tree_written", "files_kept")
SETUP_POINTS: Final = (
    "setup_started",
    "setup_ran",
    "cache_written",
    "cache_uploaded",
    "cache_restoring",
    "cache_restored",
)
OUTPUT_POINTS: Final = ("upload_noted", "upload_stored", "outputs_stored")
PACK_POINTS: Final = ("packs_merging", "packs_merged")

API_POINTS: Final = ("before_answer",)
FIRING_POINTS: Final = ("before_firing_commit", "after_firing_commit")
TRIGGER_POINTS: Final = ("before_trigger_commit", "after_trigger_commit")
DELIVERY_POINTS: Final = ("before_ref", "after_ref")
WEBHOOK_POINTS: Final = ("webhook_sent",)

# Failpoints of retention and deletion.
ARCHIVE_POINTS: Final = (
    "archive_writing",
    "archive_written",
    "archive_recorded",
    "archive_pruning",
    "archive_replaced",
)
DELETION_POINTS: Final = ("deletion_committed", "deletion_objects")
GC_POINTS: Final = ("collecting_judged", "collecting_removed")

_directory: Final = os.environ.get("FOOTPLATE_FAILPOINTS") or None


async def hit(name: str) -> None:
    if _directory is None:
        return
    action = _claim_action(Path(_directory), name)
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif action == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif action is not None:
        await asyncio.sleep(float(action))


async def hit_later(name: str, seconds: float) -> None:
    """Hit a failpoint after a delay, for an operation that another process starts at about that time."""
    await asyncio.sleep(seconds)
    await hit(name)


def _claim_action(directory: Path, name: str) -> str | None:
    claimed = directory / f".{name}.{os.getpid()}"
    try:
        (directory / name).rename(claimed)
    except FileNotFoundError:
        return None
    action = claimed.read_text().strip()
    claimed.rename(directory / f"{name}.hit")
    return action
