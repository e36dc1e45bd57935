"""Runs Claude Code directly, with the SDK and its CLI, no sandbox and no log, as the baseline of comparisons."""

import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import claude_agent_sdk as sdk

from footplate.harness.claude.session import cli_path
from footplate.testing.scripted_model_process import ModelProcess

MODEL: Final = "claude-sonnet-4-5"
_QUIET: Final = ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY", "IS_SANDBOX")


@asynccontextmanager
async def open_client(model: ModelProcess, **more: Any) -> AsyncIterator[sdk.ClaudeSDKClient]:
    """Yields a connected client with its own home and working directory. `more`: further options."""
    with tempfile.TemporaryDirectory(prefix="footplate-bare-", ignore_cleanup_errors=True) as directory:
        env = {
            **dict.fromkeys(_QUIET, "1"),
            "ANTHROPIC_BASE_URL": model.url,
            "ANTHROPIC_API_KEY": "scripted",
            "HOME": directory,
            "CLAUDE_CONFIG_DIR": f"{directory}/config",
        }
        options = sdk.ClaudeAgentOptions(
            cli_path=cli_path.find_cli(),
            cwd=directory,
            env=env,
            model=MODEL,
            system_prompt={"type": "preset", "preset": "claude_code"},
            permission_mode="bypassPermissions",
            setting_sources=[],
            include_partial_messages=True,
            **more,
        )
        async with sdk.ClaudeSDKClient(options) as connected:
            yield connected


async def read_deltas(connected: sdk.ClaudeSDKClient, prompt: str) -> list[tuple[str, float]]:
    """Runs a turn, and returns each chunk of its text with the time of arrival."""
    found: list[tuple[str, float]] = []
    await connected.query(prompt)
    async for message in connected.receive_response():
        if isinstance(message, sdk.StreamEvent):
            delta: dict[str, Any] = message.event.get("delta") or {}
            if delta.get("type") == "text_delta":
                found.append((delta["text"], time.time()))
    return found


async def measure_cold_start(model: ModelProcess, prompt: str) -> float:
    """Returns the seconds from starting the CLI to the first token."""
    began = time.time()
    async with open_client(model) as connected:
        return (await read_deltas(connected, prompt))[0][1] - began
