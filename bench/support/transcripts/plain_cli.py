"""Runs the Claude Code CLI as on a user's own machine: with its own home and without Footplate."""

import asyncio
import os
import signal
import sys
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import claude_agent_sdk as sdk

from bench.prove.figure import NotHeld
from bench.support import cluster_processes
from footplate.harness.claude.session import cli_path
from footplate.testing.scripted_model_process import ModelProcess

MODEL: Final = "claude-sonnet-4-5"
_ENABLED_VARIABLES: Final = (
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "DISABLE_AUTOUPDATER",
    "DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING", "IS_SANDBOX",
)  # fmt: skip
_PATIENCE: Final = 120.0


class LocalMachine:
    """A user's machine as the CLI sees it: a home and a working directory."""

    def __init__(self, directory: Path, model: ModelProcess) -> None:
        self.home = directory / "home"
        self.work = directory / "work"
        self._model = model
        for path in (self.home, self.work):
            path.mkdir(parents=True)

    @property
    def environment(self) -> dict[str, str]:
        """The complete environment; nothing is inherited."""
        return {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "HOME": str(self.home),
            "CLAUDE_CONFIG_DIR": str(self.home / "config"),
            "ANTHROPIC_BASE_URL": self._model.url,
            "ANTHROPIC_API_KEY": "scripted",
            "CLAUDE_CODE_MAX_RETRIES": "0",
            **dict.fromkeys(_ENABLED_VARIABLES, "1"),
        }

    async def start_session(self, *prompts: str) -> str:
        """Starts a session, sends these prompts one after another in one process, and returns its id."""
        session_id = str(uuid.uuid4())
        await self._converse(prompts, sdk.ClaudeAgentOptions(session_id=session_id))
        return session_id

    async def continue_session(self, session_id: str, *prompts: str, at: str | None = None) -> None:
        """Continues a session with these prompts. With `at`, it continues from that message and drops later ones."""
        extra: dict[str, str | None] = {"resume-session-at": at} if at else {}
        await self._converse(prompts, sdk.ClaudeAgentOptions(resume=session_id, extra_args=extra))

    async def resume_with_cli(self, session_id: str, prompt: str) -> None:
        """Resumes a session as a user does, with `claude --resume`."""
        process = await self._spawn("--resume", session_id, prompt)
        async with asyncio.timeout(_PATIENCE):
            out, err = await process.communicate()
        if process.returncode != 0:
            raise NotHeld(f"claude --resume exited with {process.returncode}: {(out + err)[-500:].decode()}")

    async def run_and_kill(self, prompt: str, *, when: Callable[[], bool], resume: str | None = None) -> str:
        """Starts or resumes a session, kills it and its child processes when `when` is true, and returns its id."""
        session_id = resume or str(uuid.uuid4())
        process = await self._spawn("--resume" if resume else "--session-id", session_id, prompt)
        try:
            async with asyncio.timeout(_PATIENCE):
                while not when():  # noqa: ASYNC110 - there is no notification for a file
                    await asyncio.sleep(0.05)
        finally:
            process.kill()
            await process.wait()
            self._kill_commands()
        return session_id

    def transcript(self, session_id: str) -> Path:
        (found,) = (self.home / "config" / "projects").rglob(f"{session_id}.jsonl")
        return found

    async def run_footplate(self, *arguments: str, url: str, key: str) -> str:
        """Runs the Footplate command line on this machine and returns its output."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "footplate", *arguments),
            env={**self.environment, "FOOTPLATE_BASE_URL": url, "FOOTPLATE_API_KEY": key},
            cwd=self.work,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(_PATIENCE):
            out, err = await process.communicate()
        if process.returncode != 0:
            raise NotHeld(f"footplate {arguments[0]} exited with {process.returncode}: {(out + err)[-500:].decode()}")
        return out.decode()

    async def _converse(self, prompts: tuple[str, ...], options: sdk.ClaudeAgentOptions) -> None:
        options.cli_path = cli_path.find_cli()
        options.cwd = self.work
        options.model = MODEL
        options.permission_mode = "bypassPermissions"
        options.setting_sources = []
        # The SDK adds these to the inherited environment; an empty variable counts as unset.
        inherited = dict.fromkeys((name for name in os.environ if name.startswith(("ANTHROPIC_", "CLAUDE"))), "")
        options.env = {**inherited, **self.environment}
        async with asyncio.timeout(_PATIENCE), sdk.ClaudeSDKClient(options) as client:
            for prompt in prompts:
                await client.query(prompt)
                async for _ in client.receive_response():
                    pass

    def _kill_commands(self) -> None:
        """Kills the commands that the CLI started, because they survive it."""
        for entry in os.scandir("/proc"):
            with suppress(OSError):
                if entry.name.isdigit() and cluster_processes.works_below(Path(entry.path), self.work):
                    os.kill(int(entry.name), signal.SIGKILL)

    async def _spawn(self, *arguments: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *(str(cli_path.find_cli()), "-p", "--model", MODEL, "--dangerously-skip-permissions", *arguments),
            env=self.environment,
            cwd=self.work,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
