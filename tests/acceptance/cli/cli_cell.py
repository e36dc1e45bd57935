"""A `footplate dev` with a scripted model for tests of the command line, and commands as a shell starts them."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.support import cluster_processes
from bench.support.command_server import Command, CommandServer, ForkedProcess
from jsonschema import Draft202012Validator

from footplate.cli.profile import dev_server
from footplate.client import AsyncFootplate
from footplate.stack.free_ports import find_free_port

SCHEMAS: Final = Path(__file__).resolve().parents[3] / "docs" / "schemas"


def _delegate(subagent: str, script: str) -> Mapping[str, Any]:
    tool_input = {"description": "Look", "prompt": f"Go. [[script:{script}]]", "subagent_type": subagent}
    return {"tool": "Agent", "input": tool_input}


SCRIPTS: Final[Mapping[str, Any]] = {
    "default": [
        [{"text": "I say hello.", "chunks": 3}, {"tool": "bash", "input": {"command": "echo hello"}}],
        {"steps": [{"text": "Done."}], "repeat": True},
    ],
    "slow": [[{"text": "This takes long."}, {"tool": "bash", "input": {"command": "sleep 60"}}], [{"text": "Over."}]],
    "wide": [
        [
            {"text": "word " * 60},
            {"tool": "bash", "input": {"command": f"echo {'x' * 300}"}},
            {"tool": "read", "input": {"file_path": f"no/{'such/' * 60}file"}},
        ],
        [{"text": "\u001b[31mred\u0007 and done."}],
    ],
    "bad": [[{"http_error": 400, "message": "that model does not exist"}]],
    "question": [
        [
            {
                "tool": "ask_user",
                "input": {
                    "questions": [{"question": "Which colour?", "options": [{"label": "Red"}, {"label": "Blue"}]}]
                },
            }
        ],
        [{"text": "Done."}],
    ],
    "ask": [[{"tool": "ask", "input": {"question": "Which one?"}}], [{"text": "Thank you."}]],
    "here": [[{"tool": "bash", "input": {"command": "pwd > here.txt"}}], [{"text": "Here."}]],
    "delegate": [[_delegate("scout", "look")], [{"text": "It looked."}]],
    "both": [[_delegate("scout", "look"), _delegate("cook", "look")], [{"text": "Both looked."}]],
    "look": [
        [{"tool": "Bash", "input": {"command": "echo looked >> looked.txt"}}],
        {"steps": [{"text": "All quiet."}], "repeat": True},
    ],
    "touch": [
        [{"tool": "bash", "input": {"command": "touch hello.txt"}}],
        [{"tool": "bash", "input": {"command": "touch again.txt"}}],
        [{"tool": "bash", "input": {"command": "touch again.txt"}}],
        [{"text": "Touched."}],
    ],
    "outputs": [
        [
            {
                "tool": "bash",
                "input": {"command": 'cd "$FOOTPLATE_OUTPUTS" && mkdir sub && echo 1 > a.txt && echo 2 > sub/b'},
            }
        ],
        [{"tool": "bash", "input": {"command": 'cd "$FOOTPLATE_OUTPUTS" && ln -s a.txt link'}}],
        [{"text": "Left."}],
    ],
    "story": [[{"text": "Once upon a time there was an agent. The end.", "chunks": 5, "delay": 1.5}]],
    "nap": [[{"tool": "bash", "input": {"command": "sleep 4"}}], [{"text": "Still here."}]],
}


def fits(name: str, text: str) -> Any:
    """Validates the output of a command against its schema and returns it."""
    value = json.loads(text)
    Draft202012Validator(json.loads((SCHEMAS / f"{name}.json").read_text())).validate(value)
    return value


@dataclass(frozen=True, slots=True)
class Done:
    code: int
    out: str
    err: str


class Cell:
    def __init__(self, home: Path, commands: CommandServer) -> None:
        self.home = home
        self.user_home = home.with_name(f"{home.name}-person")
        """The home directory of the user. Agents do not work in it."""
        self.user_home.mkdir()
        self._commands = commands
        self.port = find_free_port()
        self.script = home / "script.json"
        self.script.write_text(
            json.dumps({"scripts": {name: {"replies": replies} for name, replies in SCRIPTS.items()}})
        )
        self._dev: asyncio.subprocess.Process | None = None

    @property
    def environment(self) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "HOME": str(self.user_home), "LANG": "C.UTF-8", "TERM": "xterm-256color"}

    @property
    def _data(self) -> Path:
        return self.user_home / ".local/share/footplate"

    def client(self) -> AsyncFootplate:
        running, key = dev_server.find_dev_server(self._data), dev_server.load_api_key(self._data)
        assert running is not None
        assert key is not None
        return AsyncFootplate(running.base_url, key)

    async def start(self) -> None:
        self._dev = await self.start_program("dev", "--port", str(self.port), "--scripted", str(self.script))
        assert self._dev.stdout is not None
        async with asyncio.timeout(120):
            while line := await self._dev.stdout.readline():
                if b"Ctrl-C stops everything" in line:
                    return
        assert self._dev.stderr is not None
        raise AssertionError((await self._dev.stderr.read()).decode())

    async def kill(self) -> None:
        assert self._dev is not None
        self._dev.kill()
        await self._dev.wait()

    async def stop(self) -> None:
        """Stops `footplate dev` and checks that it exits cleanly without orphans."""
        if self._dev is None or self._dev.returncode is not None:
            return
        self._dev.send_signal(signal.SIGTERM)
        assert await self._dev.wait() == 0
        assert not cluster_processes.find_cluster_processes(self.home.name, self._data)
        assert dev_server.find_dev_server(self._data) is None

    async def spawn(self, *arguments: str, **extra: str) -> Command:
        """Starts a command in its own process, forked from one that has already loaded the command line."""
        return await self._commands.spawn(*arguments, cwd=self.home, env={**self.environment, **extra})

    async def spawn_on_terminal(self, terminal: int, *arguments: str, **extra: str) -> ForkedProcess:
        """Starts a command on a terminal, in the directory of this process."""
        env = {**self.environment, **extra}
        return await self._commands.spawn_logged(*arguments, cwd=Path.cwd(), env=env, log=terminal)

    async def start_program(self, *arguments: str, **extra: str) -> asyncio.subprocess.Process:
        """Starts the program as a shell does."""
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "footplate", *arguments),
            env={**self.environment, **extra},
            cwd=self.home,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    async def run(self, *arguments: str, **extra: str) -> Done:
        return await finish(await self.spawn(*arguments, **extra))

    async def run_program(self, *arguments: str, **extra: str) -> Done:
        return await finish(await self.start_program(*arguments, **extra))


async def finish(process: Command | asyncio.subprocess.Process) -> Done:
    async with asyncio.timeout(100):
        out, err = await process.communicate()
    return Done(process.returncode or 0, out.decode(), err.decode())
