"""Runs a command hook in the session's environment, with Claude Code's JSON format on stdin and stdout.

Existing hook scripts for Claude Code therefore work unchanged. The environment limits the hook's memory, as it does for
every command.
"""

import json
from typing import Final

from footplate.domain.json import JsonObject, clean_text
from footplate.domain.ports.harness import CommandResult, Environment
from footplate.gate.hooks.hook_config import Hook
from footplate.gate.hooks.hook_output import OUTPUT_TOO_LARGE, HookOutput, parse_output

_DENY_EXIT_CODE: Final = 2
"""The exit code of a denial, as in Claude Code."""
_MAX_MESSAGE_CHARACTERS: Final = 2000


async def run_command_hook(hook: Hook, payload: JsonObject, environment: Environment) -> HookOutput:
    await environment.ensure_open()
    argv = ["env", f"CLAUDE_PROJECT_DIR={environment.root}", "sh", "-c", hook.target]
    result = await environment.run(argv, stdin=json.dumps(payload).encode(), timeout=hook.timeout_seconds)
    return parse_command_result(hook, result)


def parse_command_result(hook: Hook, result: CommandResult) -> HookOutput:
    if result.timed_out:
        return HookOutput(failure=f"The hook did not respond within {hook.timeout_seconds:g} s.")
    if result.exit_code is None or result.error:
        return HookOutput(failure=f"The hook was terminated before it responded. {result.error}".strip())
    if result.truncated:
        return HookOutput(failure=OUTPUT_TOO_LARGE)
    if result.exit_code == _DENY_EXIT_CODE:
        return HookOutput(denial_reason=_clean_message(result.stderr) or "The hook gave no reason.")
    if result.exit_code != 0:
        return HookOutput(
            failure=f"The hook failed with exit code {result.exit_code}. {_clean_message(result.stderr)}".strip()
        )
    return parse_output(result.stdout)


def _clean_message(printed: bytes) -> str:
    return clean_text(printed.decode(errors="replace").strip()[:_MAX_MESSAGE_CHARACTERS])
