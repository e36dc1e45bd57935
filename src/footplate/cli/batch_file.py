"""Reads a batch file: one job in each line, as JSON. Each error names the line.

The server checks the same again. Here the whole file is checked before the batch is created.
"""

import difflib
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

MAX_JOBS: Final = 5_000
_WORK: Final = ("prompt", "shell", "steps")
_FIELDS: Final = (
    *_WORK,
    "custom_id",
    "agent",
    "environment_id",
    "title",
    "metadata",
    "context",
    "project_ids",
    "workspace_id",
    "permissions",
)
_CUSTOM_ID: Final = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_MAX_PROBLEMS: Final = 10


class InvalidBatchFile(Exception):
    """The file cannot be used. Each problem is a line that starts with its place in the file."""

    def __init__(self, problems: Sequence[str]) -> None:
        shown = [*problems[:_MAX_PROBLEMS]]
        if len(problems) > _MAX_PROBLEMS:
            shown.append(f"… and {len(problems) - _MAX_PROBLEMS} more")
        super().__init__("\n".join(shown))


def load_jobs(path: Path) -> list[dict[str, Any]]:
    """Returns the requests of the file. A job without `agent` or `environment_id` gets them from the caller."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InvalidBatchFile([f"{path}: cannot be read: {error.strerror}"]) from None
    except UnicodeDecodeError:
        raise InvalidBatchFile([f"{path}: cannot be read: it is not UTF-8 text"]) from None
    return parse_jobs(text, str(path))


def parse_jobs(text: str, path: str) -> list[dict[str, Any]]:
    jobs: list[dict[str, Any]] = []
    problems: list[str] = []
    lines_of_ids: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            job = json.loads(line)
        except ValueError as error:
            problems.append(f"{path}:{number}: not valid JSON: {error}")
            continue
        if not isinstance(job, dict):
            problems.append(f"{path}:{number}: a job must be a JSON object, on one line")
            continue
        job = {"custom_id": f"line-{number}", **job}
        problems += [f"{path}:{number}: {problem}" for problem in _find_problems(job, lines_of_ids)]
        lines_of_ids.setdefault(str(job["custom_id"]), number)
        jobs.append(_to_request(job))
    if not jobs and not problems:
        problems = [f"{path}: has no job. Write one JSON object in each line"]
    if len(jobs) > MAX_JOBS:
        problems = [f"{path}: has {len(jobs)} jobs, and a batch can have at most {MAX_JOBS}. Split the file"]
    if problems:
        raise InvalidBatchFile(problems)
    return jobs


def _find_problems(job: dict[str, Any], lines_of_ids: dict[str, int]) -> Iterator[str]:
    for name in job:
        if name not in _FIELDS:
            close = difflib.get_close_matches(name, _FIELDS, 1)
            yield f"there is no field {name}. " + (
                f"Did you mean {close[0]}?" if close else f"Use {', '.join(_FIELDS)}"
            )
    if sum(job.get(name) is not None for name in _WORK) != 1:
        yield "a job must have exactly one of the fields prompt, shell and steps"
    custom_id = job["custom_id"]
    if not isinstance(custom_id, str) or not _CUSTOM_ID.fullmatch(custom_id):
        yield "custom_id must have 1 to 64 letters, digits, dots, hyphens and underscores"
    elif custom_id in lines_of_ids:
        yield f"custom_id {custom_id} is also in line {lines_of_ids[custom_id]}"
    if not isinstance(job.get("shell"), str | None):
        yield "shell must be text"


def _to_request(job: dict[str, Any]) -> dict[str, Any]:
    shell = job.get("shell")
    fields = {name: value for name, value in job.items() if name != "shell"}
    return fields if shell is None else {**fields, "steps": [{"kind": "shell", "command": shell}]}
