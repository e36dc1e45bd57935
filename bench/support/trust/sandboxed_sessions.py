"""Runs turns of the real CLI in a sandbox with a given repository, next to a server that nothing should contact."""

import asyncio
import contextlib
import json
import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench.support import cluster_processes
from bench.support.trust import hostile_repository
from footplate.config import Settings
from footplate.domain import ids
from footplate.domain.agents.agents_and_config import ResolvedConfig
from footplate.domain.agents.environment_config import EnvironmentConfig
from footplate.domain.ports.engine import Environments, OpenEnvironment, OpenRequest
from footplate.domain.ports.harness import Endpoint, Entry, FullOutput, SteerMessage, TurnContext
from footplate.domain.projects.project import Trust
from footplate.domain.projects.project_instructions import ProjectInstructions
from footplate.domain.sessions import events as ev
from footplate.domain.sessions.events import Event, PreviewType, Usage
from footplate.domain.sessions.turns import TurnOutcome
from footplate.environments.session_directories import WORKSPACES
from footplate.harness.claude.harness import ClaudeHarness
from footplate.lease_clock import lease_clock
from footplate.proxy.model_proxy import ModelProxy
from footplate.testing import Replies
from footplate.testing.scripted_gate import ScriptedGate
from footplate.testing.scripted_model_process import ModelProcess
from footplate.trees.git import Git
from footplate.trees.projects import project_instructions
from footplate.wiring.environment_backend import create_environment_backend

MODEL: Final = "claude-sonnet-4-5"
_TOOLS: Final = ("bash", "read", "write", "edit", "glob", "grep")
_ORGANISATION: Final = "default"
_LEASE: Final = 300.0


@dataclass(slots=True)
class Preview:
    event_id: str = field(default_factory=lambda: ids.new_id(ids.EVENT))

    def write(self, text: str) -> None:
        pass


@dataclass(slots=True)
class MemoryLog:
    """A turn's log in memory, because only the CLI's behaviour is tested here."""

    events: list[Event] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)

    async def append(
        self, events: Sequence[Event] = (), *, entries: Sequence[Entry] = (), usage: Usage | None = None
    ) -> None:
        del usage
        self.events += events
        self.entries += entries

    async def upload_files_ahead(self) -> None:
        pass

    async def store_output(self, output: FullOutput, *, name: str | None = None) -> str:  # noqa: ARG002
        return str(output.size)

    def check(self) -> None:
        pass

    def preview(self, event_type: PreviewType) -> Preview:
        del event_type
        return Preview()


@dataclass(slots=True)
class Repository:
    """A repository on the host with files and links in one commit."""

    directory: Path
    commit: str = ""

    def make(self, files: Mapping[str, str], links: Mapping[str, str]) -> None:
        self.directory.mkdir(parents=True)
        for path, text in files.items():
            (self.directory / path).parent.mkdir(parents=True, exist_ok=True)
            (self.directory / path).write_text(text)
        for path, target in links.items():
            (self.directory / path).symlink_to(target)
        self._git("init", "-q", "-b", "main")
        self._git("add", "-A", "-f")
        self._git("commit", "-q", "-m", "One")
        self.commit = self._git("rev-parse", "HEAD").strip()

    async def load_instructions(self, trust: Trust) -> ProjectInstructions:
        return await project_instructions.read_instructions(Git(git_dir=self.directory / ".git"), self.commit, trust)

    def _git(self, *argv: str) -> str:
        own = ("-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "core.hooksPath=/dev/null")
        clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        command = ["git", *own, *argv]
        return subprocess.run(command, cwd=self.directory, env=clean, check=True, capture_output=True, text=True).stdout


@dataclass(slots=True)
class TrustSession:
    setup: "TrustSetup"
    tree: Path
    project_instructions: ProjectInstructions
    id: str
    log: MemoryLog = field(default_factory=MemoryLog)
    number: int = 0

    async def run_turn(self, text: str) -> TurnOutcome:
        """Runs a turn in its own environment, with the conversation so far."""
        self.number += 1
        turn_id = f"turn_{self.number}"
        grant = self.setup.models.grant(deadline=lease_clock() + _LEASE)
        environment: OpenEnvironment | None = None
        try:
            environment = await self.setup.environments.open_environment(
                OpenRequest(
                    organisation=_ORGANISATION,
                    session_id=self.id,
                    deadline=lease_clock() + _LEASE,
                    variables={"FOOTPLATE_SESSION_ID": self.id, "FOOTPLATE_TURN_ID": turn_id},
                    config=EnvironmentConfig(),
                    models=grant,
                )
            )
            return await ClaudeHarness().run(self._context(turn_id, text, environment, grant.endpoints))
        finally:
            if environment is not None:
                await environment.aclose()
            await grant.aclose()

    def _context(
        self, turn_id: str, text: str, environment: OpenEnvironment, endpoints: Mapping[str, Endpoint]
    ) -> TurnContext:
        async def claim_no_steering() -> Sequence[SteerMessage]:
            return ()

        return TurnContext(
            organisation=_ORGANISATION,
            session_id=self.id,
            turn_id=turn_id,
            attempt=1,
            config=ResolvedConfig(harness="claude", model=MODEL, system="Be brief.", tools=_TOOLS),
            content=[ev.text_block(f"{text} ({self.id})")],
            history=list(self.log.entries),
            turn_events=(),
            log=self.log,
            environment=environment,
            gate=ScriptedGate(),
            interrupt=asyncio.Event(),
            claim_steering=claim_no_steering,
            endpoints=endpoints,
            project_instructions=self.project_instructions,
        )

    async def model_received(self, text: str) -> bool:
        """Returns whether any model request of this session contains the text."""
        bodies = [json.dumps(request["body"]) for request in await self.setup.model.requests()]
        return any(text in body for body in bodies if self.id in body)

    def marks(self) -> list[str]:
        """Returns the names of all marks in the tree or the home."""
        homes = self.tree.with_name(f"{self.tree.name}.state")
        names = {path.name for directory in (self.tree, homes) for path in cluster_processes.walk_paths(directory)}
        return sorted(
            name.removeprefix(hostile_repository.MARK) for name in names if name.startswith(hostile_repository.MARK)
        )


@dataclass(slots=True)
class TrustSetup:
    directory: Path
    environments: Environments
    models: ModelProxy
    model: ModelProcess
    server: "UnusedServer"
    data: Path

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, scripts: Callable[[str], Mapping[str, Replies]]) -> AsyncIterator["TrustSetup"]:
        directory = Path(tempfile.mkdtemp(prefix="footplate-trust-"))
        await asyncio.to_thread(directory.chmod, 0o755)
        data = directory / "data"
        try:
            async with contextlib.AsyncExitStack() as exits:
                server = await exits.enter_async_context(UnusedServer.open())
                model = await exits.enter_async_context(ModelProcess(scripts(server.url)))
                # The network is open, so that an attempt to contact the server succeeds.
                settings = Settings(data_dir=data, environment="sandbox", sandbox_network="open")
                chosen = await create_environment_backend(
                    settings, worker=ids.new_id(ids.WORKER), is_lease_expired=_never, trees=None
                )
                models = await exits.enter_async_context(ModelProxy({"anthropic": Endpoint("a-key", model.url)}))
                yield cls(directory, chosen.environments, models, model, server, data)
        finally:
            await asyncio.to_thread(shutil.rmtree, directory)

    async def create_session(
        self, trust: Trust, files: Mapping[str, str], links: Mapping[str, str] | None = None
    ) -> TrustSession:
        """Creates a session in a tree with these files, from a repository with one commit."""
        session_id = f"sesn_{secrets.token_hex(6)}"
        repository = Repository(self.directory / f"{session_id}.origin")
        await asyncio.to_thread(repository.make, files, links or {})
        tree = self.data / WORKSPACES / _ORGANISATION / session_id
        tree.parent.mkdir(parents=True, exist_ok=True)
        await asyncio.to_thread(shutil.copytree, repository.directory, tree, symlinks=True)
        return TrustSession(self, tree, await repository.load_instructions(trust), session_id)


@dataclass(slots=True)
class UnusedServer:
    """A server that responds to everything with 404 and records the requests."""

    url: str = ""
    requests: list[str] = field(default_factory=list)

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls) -> AsyncIterator["UnusedServer"]:
        server = cls()
        listening = await asyncio.start_server(server._respond, "127.0.0.1", 0)
        server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        async with listening:
            yield server

    async def _respond(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            line = await reader.readline()
            self.requests.append(line.decode(errors="replace").strip())
            writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            await writer.drain()
        writer.close()


async def _never(_worker: str) -> bool:
    return False
