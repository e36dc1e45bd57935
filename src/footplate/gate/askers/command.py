"""Runs a command hook in the session's environment, with Claude Code's JSON on stdin and stdout.

Existing scripts for Claude Code therefore work unchanged.

The environment limits its memory, as for every other command.
"""

import json
from typing import Final

from footplate.domain.json import JsonObject, clean_text
from footplate.domain.ports import CommandResult, Environment
from footplate.gate.hooks import Hook
from footplate.gate.words import TOO_MUCH, Word, read

_REFUSES: Final = 2
"""The exit code of a denial, as in Claude Code."""
_MOST_SAID: Final = 2000


async def ask(hook: Hook, told: JsonObject, environment: Environment) -> Word:
    await environment.ensure_open()
    argv = ["env", f"CLAUDE_PROJECT_DIR={environment.root}", "sh", "-c", hook.target]
    result = await environment.run(argv, stdin=json.dumps(told).encode(), timeout=hook.timeout_seconds)
    return word_of(hook, result)


def word_of(hook: Hook, result: CommandResult) -> Word:
    if result.timed_out:
        return Word(failure=f"The hook did not respond within {hook.timeout_seconds:g} s.")
    if result.exit_code is None or result.error:
        return Word(failure=f"The hook was terminated before it responded. {result.error}".strip())
    if result.truncated:
        return Word(failure=TOO_MUCH)
    if result.exit_code == _REFUSES:
        return Word(refusal=_text(result.stderr) or "The hook gave no reason.")
    if result.exit_code != 0:
        return Word(failure=f"The hook failed with exit code {result.exit_code}. {_text(result.stderr)}".strip())
    return read(result.stdout)


def _text(printed: bytes) -> str:
    return clean_text(printed.decode(errors="replace").strip()[:_MOST_SAID])
