"""Finds what Claude Code does with a call: it runs the call, requests approval, or denies it. Approval is always
denied.

The CLI has its own home, configuration and variables; nothing of this machine's is passed on. Its user has trusted the
repository. Without that, it ignores the allow rules of a file.
"""

import json
import shlex
import tempfile
from pathlib import Path
from typing import Any, Final

import claude_agent_sdk as sdk

from bench.support.claude_settings.settings_cases import SettingsCase
from bench.support.mcp_server.server_process import NAME
from bench.support.trust.sandboxed_sessions import MODEL, Repository
from footplate.domain.policy.permissions import PermissionOutcome
from footplate.harness.claude.session import cli_path
from footplate.testing import replies, reply, text, tool
from footplate.testing.scripted_model_process import ModelProcess

_QUIET: Final = (
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
    "DISABLE_AUTOUPDATER",
    "DISABLE_TELEMETRY",
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS",
)
TOOLS: Final = ("Bash", "Read", "Write", "Edit", "Glob", "Grep", "WebFetch")
_PASSED_VARIABLES: Final = ("CLAUDE_CODE_ENTRYPOINT", "CLAUDE_AGENT_SDK_VERSION")


class _ApprovalRecorder:
    def __init__(self) -> None:
        self.ids: set[str] = set()

    async def __call__(
        self, name: str, given: dict[str, Any], context: sdk.ToolPermissionContext
    ) -> sdk.PermissionResult:
        del name, given
        self.ids.add(context.tool_use_id or "")
        return sdk.PermissionResultDeny(message="Not now.")


async def make_calls(
    model: ModelProcess, case: SettingsCase, repository: Repository, mcp_url: str
) -> list[tuple[PermissionOutcome, str]]:
    """Makes the calls one after the other in the repository, and returns the outcome and the result of each."""
    steps = [reply(tool(call.tool, call.input, call_id=_id(number))) for number, call in enumerate(case.calls)]
    await model.install(f"cli-{case.name}", replies(*steps, [text("Done.")]))
    asked = _ApprovalRecorder()
    shown: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="footplate-cli-", ignore_cleanup_errors=True) as home:
        options = sdk.ClaudeAgentOptions(
            cli_path=_write_wrapper(Path(home), model.url, trusted=repository.directory),
            cwd=repository.directory,
            model=MODEL,
            tools=list(TOOLS),
            setting_sources=["project", "local"],
            can_use_tool=asked,
            mcp_servers={NAME: {"type": "http", "url": mcp_url}},
            strict_mcp_config=True,
        )
        async with sdk.ClaudeSDKClient(options) as client:
            await client.query(f"Go. [[script:cli-{case.name}]]")
            async for message in client.receive_response():
                content = message.content if isinstance(message, sdk.UserMessage) else ()
                for block in content if not isinstance(content, str) else ():
                    if isinstance(block, sdk.ToolResultBlock):
                        shown[block.tool_use_id] = str(block.content)
    return [
        (
            _outcome(_id(number) in asked.ids, made=_was_made(case, number, shown, repository)),
            shown.get(_id(number), ""),
        )
        for number in range(len(case.calls))
    ]


def _outcome(asked: bool, *, made: bool) -> PermissionOutcome:  # noqa: FBT001 - its name explains it
    if made:
        return PermissionOutcome.ALLOW
    return PermissionOutcome.ASK if asked else PermissionOutcome.DENY


def _was_made(case: SettingsCase, number: int, shown: dict[str, str], repository: Repository) -> bool:
    call = case.calls[number]
    return (repository.directory / call.leaves).exists() if call.leaves else call.shows in shown.get(_id(number), "")


def _id(number: int) -> str:
    return f"toolu_{number}"


def _write_wrapper(home: Path, model_url: str, *, trusted: Path) -> Path:
    """Writes a wrapper of the CLI that passes only these variables on. The SDK would pass on its whole environment."""
    (home / "config").mkdir()
    accepted = {"projects": {str(trusted): {"hasTrustDialogAccepted": True}}}
    (home / "config" / ".claude.json").write_text(json.dumps(accepted))
    variables = {
        **dict.fromkeys(_QUIET, "1"),
        "ANTHROPIC_BASE_URL": model_url,
        "ANTHROPIC_API_KEY": "scripted",
        "HOME": str(home),
        "CLAUDE_CONFIG_DIR": str(home / "config"),
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
    }
    assignments = " ".join(shlex.quote(f"{name}={value}") for name, value in variables.items())
    passed = " ".join(f'{name}="${name}"' for name in _PASSED_VARIABLES)
    script = home / "claude"
    script.write_text(f'#!/bin/sh\nexec env -i {assignments} {passed} {shlex.quote(str(cli_path.find_cli()))} "$@"\n')
    script.chmod(0o755)
    return script
