"""Several children solve the same task, and the parent continues with the files of the one whose check passes."""

import asyncio
import random
from collections.abc import Mapping, Sequence
from typing import Any, Final

from bench.support.children.site import ChildSite, find_in_messages
from footplate.testing import text, tool
from footplate.testing.model_scripts import Request
from footplate.testing.reply_steps import Step

_SCRIPT: Final = "candidate"
_AT_ONCE: Final = 2
_FILE: Final = "solution"


def _reply_as_candidate(request: Request) -> Sequence[Step]:
    command = _command(int(find_in_messages(request, r"You are candidate (\d+)")))
    return [text("Done.")] if request.n else [tool("bash", {"command": command})]


async def count_right_choices(site: ChildSite, rng: random.Random, rounds: int, candidates: int) -> int:
    """Returns in how many rounds the parent had the files of the candidate whose check passes. Half of the candidates
    are prompts, the others commands.
    """
    site.model.install(_SCRIPT, _reply_as_candidate)
    right = 0
    numbers = iter(range(rounds))

    async def run_rounds() -> None:
        nonlocal right
        for number in numbers:
            passing = rng.randrange(candidates)
            is_right = await _run_round(site, number, passing, candidates)
            right += is_right

    await asyncio.gather(*(run_rounds() for _ in range(_AT_ONCE)))
    return right


async def _run_round(site: ChildSite, number: int, passing: int, candidates: int) -> bool:
    session_id = await site.new_session()
    sessions = [_definition(index, is_prompt=(index + number) % 2 == 0) for index in range(candidates)]
    check = f"grep -qx {passing} {_FILE}"
    choice, shown = await site.add_steps(
        session_id,
        {"kind": "parallel", "sessions": sessions, "branches": "best", "check": check},
        {"kind": "shell", "command": f"cat {_FILE}"},
    )
    chosen, output = await site.wait_for(choice), await site.wait_for(shown)
    reported = [] if chosen.result is None else chosen.result.sessions or []
    outcomes = [member["outcome"] for member in reported]
    found = "" if output.result is None else output.result.stdout.strip()
    is_right = found == str(passing) and outcomes == [
        "completed" if index == passing else "failed" for index in range(candidates)
    ]
    site.check(
        holds=is_right, otherwise=f"round {number}: candidate {passing} passes, found {found!r}, sessions: {reported}"
    )
    return is_right


def _definition(index: int, *, is_prompt: bool) -> Mapping[str, Any]:
    work = {"prompt": f"You are candidate {index}. [[script:{_SCRIPT}]]"} if is_prompt else {"shell": _command(index)}
    return {"name": f"n{index}", **work}


def _command(index: int) -> str:
    return f"echo {index} > {_FILE}"
