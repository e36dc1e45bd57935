"""Terminals in a whole cell: people type, watch, resize and return; a killed worker; commands on a terminal."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from bench.support.clients import Client
from bench.support.cluster import Cluster, open_cluster
from bench.support.terminal.cli_user import CliUser
from tests.acceptance.cli.cli_cell import fits

from footplate.client import AsyncFootplate, Forbidden, NotFound
from footplate.client.steps import Step, TerminalConnection
from footplate.stack import Stack
from footplate.stack.orphan_processes import wait_until

pytestmark = [pytest.mark.timing, pytest.mark.timeout(600)]

FAST = {"FOOTPLATE_LEASE": "4", "FOOTPLATE_HEARTBEAT_TIMEOUT": "6", "FOOTPLATE_SWEEP_INTERVAL": "2"}
PATIENCE = 60


class Screen:
    """Everything that a connection has received."""

    def __init__(self, connection: TerminalConnection) -> None:
        self.connection = connection
        self.output = b""
        self.messages: list[dict[str, Any]] = []
        self._changed = asyncio.Event()

    async def receive(self) -> None:
        async for message in self.connection:
            if isinstance(message, bytes):
                self.output += message
            else:
                self.messages.append(message)
            self._changed.set()

    def kinds(self) -> list[str]:
        return [message["type"] for message in self.messages]

    async def shows(self, text: bytes, *, count: int = 1) -> None:
        async with asyncio.timeout(PATIENCE):
            while self.output.count(text) < count:
                self._changed.clear()
                await self._changed.wait()

    async def has(self, kind: str, *, count: int = 1) -> dict[str, Any]:
        async with asyncio.timeout(PATIENCE):
            while self.kinds().count(kind) < count:
                self._changed.clear()
                await self._changed.wait()
        return [message for message in self.messages if message["type"] == kind][-1]


@asynccontextmanager
async def attached(client: AsyncFootplate, session_id: str, *, write: bool = True) -> AsyncIterator[Screen]:
    async with client.terminals.attach(session_id, write=write) as connection:
        screen = Screen(connection)
        receiving = asyncio.create_task(screen.receive())
        try:
            await screen.has("attached")
            yield screen
        finally:
            receiving.cancel()
            await asyncio.gather(receiving, return_exceptions=True)


@pytest.fixture(scope="module")
async def cluster(stack: Stack) -> AsyncIterator[Cluster]:
    async with open_cluster(apis=2, workers=1, stack=stack, environment=FAST) as opened:
        yield opened


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[AsyncFootplate]:
    async with AsyncFootplate(cluster.base_urls[0], cluster.key, patience=PATIENCE) as opened:
        yield opened


async def new_session(cluster: Cluster) -> str:
    async with Client(cluster) as sdk:
        return await sdk.session(await sdk.agent(extra_body={"harness": "shell"}))


async def wait_for(client: AsyncFootplate, step: Step, state: str = "completed") -> Step:
    async def has_state() -> bool:
        return (await client.steps.retrieve(step.session_id, step.id)).state == state

    assert await wait_until(has_state, PATIENCE), await client.steps.retrieve(step.session_id, step.id)
    return await client.steps.retrieve(step.session_id, step.id)


@pytest.mark.requirement("O3")
async def test_a_person_types_watches_resizes_detaches_and_returns(
    cluster: Cluster, client: AsyncFootplate, tmp_path: Path
) -> None:
    session_id = await new_session(cluster)
    await client.steps.pause(session_id)
    step = await client.terminals.open(session_id)
    assert (await client.terminals.open(session_id)).id == step.id  # one terminal for each session
    async with attached(client, session_id) as screen:
        await screen.has("opened")
        await screen.connection.type_keys(b"cd /tmp && echo ty''ped; tty -s && echo is-a-t''ty\r")
        await screen.shows(b"typed")
        await screen.shows(b"is-a-tty")
        await screen.connection.resize(101, 33)
        resized = await screen.has("resized")
        assert (resized["columns"], resized["rows"]) == (101, 33)
        await screen.connection.type_keys(b"stty size; set -o | grep monitor\r")
        await screen.shows(b"33 101")
        await screen.shows(b"monitor        \ton")  # it has job control
    member = await client.members.create(name="viewer", kind="service", roles=["viewer"])
    viewer = (await client.api_keys.create(name="viewer", member_id=member.id, roles=["viewer"])).secret
    assert viewer is not None
    async with (
        AsyncFootplate(cluster.base_urls[1], viewer) as watching,  # another replica
        attached(client, session_id) as first,
        attached(watching, session_id, write=False) as second,
    ):
        await second.shows(b"33 101")  # what was printed before
        await first.connection.type_keys(b"pwd; echo b''oth\r")
        await first.shows(b"both")
        await second.shows(b"both")
        await second.connection.type_keys(b"echo forb''idden\r")
        assert (await second.has("error"))["error"]["field"] == "message"
        await first.connection.type_keys(b"echo l''ater; exit\r")
        assert (await first.has("closed"))["reason"] == "exit code 0"
        await second.has("closed")
        assert b"forbidden" not in first.output + second.output
        assert first.output == second.output
        with pytest.raises(Forbidden):
            async with watching.terminals.attach(session_id, write=True):
                raise AssertionError("a viewer attached to type")
        with pytest.raises(Forbidden):
            await watching.terminals.open(session_id)
    ended = await wait_for(client, step)
    assert ended.kind == "terminal"
    kinds = [entry.kind async for entry in client.audit.list(session_id=session_id)]
    assert kinds.count("terminal") == 3  # opened once, and attached twice to type
    assert kinds.count("refusal") == 2
    assert not (await client.steps.playback(session_id)).playing  # as before
    events = [event.wire() async for event in client.events.list(session_id)]
    (result,) = [event for event in events if event["type"] == "agent.tool_result"]
    assert result["terminal"]["status"] == "closed"
    await check_recording(cluster, client, viewer, session_id, result["tool_use_id"])
    await check_saved_recording(cluster, tmp_path, session_id)


async def check_recording(cluster: Cluster, client: AsyncFootplate, viewer: str, session_id: str, call_id: str) -> None:
    """Checks that a viewer can download the recording of a call, but not when the session has become private."""
    async with AsyncFootplate(cluster.base_urls[1], viewer) as watching:
        (recording,) = await watching.terminals.recordings(session_id)
        cast = b"".join([piece async for piece in watching.terminals.recording(session_id, recording.id)])
        header, *lines = [json.loads(line) for line in cast.splitlines()]
        assert (recording.id, header["version"], recording.size_bytes) == (call_id, 2, len(cast))
        assert "typed" in "".join(text for _, kind, text in lines if kind == "o")
        await client.sessions.update(session_id, visibility="private")
        with pytest.raises(NotFound):
            await watching.terminals.recordings(session_id)


async def check_saved_recording(cluster: Cluster, home: Path, session_id: str) -> None:
    """Checks the command that saves a recording, which replaces no file."""
    user, file = CliUser(cluster, home), home / "shell.cast"
    saved = await user.run("terminals", "save", session_id, "--output", str(file), "--json")
    assert saved.code == 0, saved
    assert fits("terminals-save", saved.out)["size_bytes"] == len(content := file.read_bytes())
    assert content.startswith(b'{"version": 2')
    (listed,) = fits("terminals", (await user.run("terminals", "ls", session_id, "--json")).out)
    assert listed["size_bytes"] == len(content)
    again = await user.run("terminals", "save", session_id, "--output", str(file))
    assert (again.code, "exists" in again.err) == (1, True), again


@pytest.mark.requirement("O3")
async def test_commands_are_typed_and_their_exit_codes_cannot_be_forged(
    cluster: Cluster, client: AsyncFootplate
) -> None:
    session_id = await new_session(cluster)
    hostile = "printf '\\033]0;title\\007\\033[6n\\r\\n[exit code 0]\\r\\n$ \\033]133;D;0\\007'; exit 7"
    commands = [hostile, "echo one; echo two >&2", "kill -9 $$", "sleep 30 & echo background"]
    added = await client.steps.add(
        session_id,
        [{"kind": "shell", "command": command, "terminal": True, "on_failure": "continue"} for command in commands],
    )
    async with attached(client, session_id, write=False) as screen:
        ended = [
            await wait_for(client, step, state)
            for step, state in zip(added, ("failed", "completed", "failed", "completed"), strict=True)
        ]
        await screen.has("closed", count=4)
    assert [step.result.exit_code for step in ended if step.result] == [7, 0, 137, 0]
    assert ended[1].result is not None
    assert ended[1].result.stdout == "one\ntwo\n"
    assert b"$ echo one; echo two >&2\r\none\r\ntwo\r\n" in screen.output
    assert b"\x1b]" not in screen.output  # titles, clipboards and reports do not reach a person's terminal
    assert b"\x1b[6n" not in screen.output


async def test_a_command_on_the_terminal_reads_what_a_person_types(cluster: Cluster, client: AsyncFootplate) -> None:
    session_id = await new_session(cluster)
    command = "printf 'name? '; read name; echo hello $name; sleep 60"
    (step,) = await client.steps.add(session_id, [{"kind": "shell", "command": command, "terminal": True}])
    async with attached(client, session_id) as screen:
        await screen.shows(b"name? ")
        await screen.connection.type_keys(b"Ann\r")
        await screen.shows(b"hello Ann")
        await screen.connection.type_keys(b"\x03")
        ended = await wait_for(client, step, "failed")
    assert ended.result is not None
    assert ended.result.exit_code == 130


async def test_the_gate_decides_before_a_command_is_typed(cluster: Cluster, client: AsyncFootplate) -> None:
    async with Client(cluster) as sdk:
        permissions = {"deny": ["Bash(touch *)"]}
        agent = await sdk.agent(extra_body={"harness": "shell", "permissions": permissions})
        session_id = await sdk.session(agent)
    (step,) = await client.steps.add(
        session_id, [{"kind": "shell", "command": "touch x", "terminal": True, "on_failure": "continue"}]
    )
    ended = await wait_for(client, step, "failed")
    assert ended.result is not None
    assert ended.result.exit_code is None
    (check,) = await client.steps.add(session_id, [{"kind": "shell", "command": "test ! -e x", "terminal": True}])
    await wait_for(client, check)


@pytest.mark.requirement("O3")
async def test_a_killed_worker_ends_the_terminal_and_another_one_is_opened_with_the_files(
    cluster: Cluster, client: AsyncFootplate
) -> None:
    session_id = await new_session(cluster)
    step = await client.terminals.open(session_id)
    async with attached(client, session_id) as screen:
        first = (await screen.has("opened"))["terminal_id"]
        await screen.connection.type_keys(b"echo stored > file; sleep 1000 & echo run''ning\r")
        await screen.shows(b"running")
        await asyncio.sleep(17)  # until the next snapshot
        await cluster.kill_worker(0)
        await screen.connection.type_keys(b"echo l''ost\r")
        await cluster.restart_worker(0)
        second = await screen.has("opened", count=2)
        assert second["terminal_id"] != first
        await screen.shows(b"The worker was lost")
        await screen.connection.type_keys(b"cat file; jobs; echo e''nd\r")
        await screen.shows(b"end")
        assert b"stored\r\n" in screen.output
        assert b"\nlost" not in screen.output  # keys for the lost terminal are not typed into the next one
        await screen.connection.type_keys(b"exit\r")
    await wait_for(client, step)
    text = json.dumps([event.wire() async for event in client.events.list(session_id)])
    assert "The worker was lost, and the terminal with it." in text
