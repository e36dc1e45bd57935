"""A command in the session's environment: Claude Code's JSON over stdin and stdout, so that existing scripts work.

Its memory is the environment's to limit, as that of every command there.
"""

import json
from typing import Final

from footplate.domain.json import JsonObject, clean_text
from footplate.domain.ports import CommandResult, Environment
from footplate.gate.hooks import Hook
from footplate.gate.words import TOO_MUCH, Word, read

_REFUSES: Final = 2
"""The exit code that says no, as in Claude Code."""
_MOST_SAID: Final = 2000


async def ask(hook: Hook, told: JsonObject, environment: Environment) -> Word:
    await environment.ensure_open()
    argv = ["env", f"CLAUDE_PROJECT_DIR={environment.root}", "sh", "-c", hook.what]
    result = await environment.run(argv, stdin=json.dumps(told).encode(), timeout=hook.seconds)
    return word_of(hook, result)


def word_of(hook: Hook, result: CommandResult) -> Word:
    if result.timed_out:
        return Word(failure=f"It did not answer within {hook.seconds:g} s.")
    if result.exit_code is None or result.error:
        return Word(failure=f"It was ended before it answered. {result.error}".strip())
    if result.truncated:
        return Word(failure=TOO_MUCH)
    if result.exit_code == _REFUSES:
        return Word(refusal=_text(result.stderr) or "It said no, and not why.")
    if result.exit_code != 0:
        return Word(failure=f"It failed with {result.exit_code}. {_text(result.stderr)}".strip())
    return read(result.stdout)


def _text(printed: bytes) -> str:
    return clean_text(printed.decode(errors="replace").strip()[:_MOST_SAID])
