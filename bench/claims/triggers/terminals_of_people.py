"""People type, see, resize, detach and return on terminals, and commands have the right exit codes there.

A person at a real terminal and one with xterm.js in Chromium share a shell, also when its worker stops. A viewer's keys
have no effect. Commands with hostile output run on a terminal that Chromium and two other connections watch: each exit
code must be the command's own, and no output may make a browser type, or change its title. Then many shells start
background processes and end in different ways, and none of these processes may remain.
"""

import asyncio
import os
import random
import secrets
import tempfile
import time
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bench.prove.figure import Figure, NotHeld, require
from bench.support.browser.terminal_page import TerminalPage, open_terminal_page
from bench.support.clients import Client
from bench.support.cluster import Cluster, open_cluster
from bench.support.terminal import cli_user, hostile_commands
from bench.support.terminal.cli_user import CliUser
from bench.support.terminal.tmux import Tmux
from bench.support.terminal.viewer import PATIENCE, view_terminal
from footplate.cli.render.terminal_io import Exit
from footplate.client import AsyncFootplate, Forbidden
from footplate.client.steps import Step
from footplate.stack.free_ports import LOOPBACK, find_free_port
from footplate.stack.orphan_processes import wait_until

_SETTINGS: Final = {
    "FOOTPLATE_LEASE": "4",
    "FOOTPLATE_HEARTBEAT_TIMEOUT": "6",
    "FOOTPLATE_SWEEP_INTERVAL": "2",
}
_SHELLS_AT_ONCE: Final = 4
_GONE_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Size:
    commands: int
    large_bytes: int
    shells: int


_FULL: Final = Size(commands=200, large_bytes=10_000_000, shells=100)
_QUICK: Final = Size(commands=11, large_bytes=1_000_000, shells=8)


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    seed = secrets.randbits(32)
    print(f"  seed {seed}", flush=True)
    port = find_free_port()
    settings = {**_SETTINGS, "FOOTPLATE_ALLOWED_ORIGINS": f"http://{LOOPBACK}:{port}"}
    async with AsyncExitStack() as ending:
        home = Path(ending.enter_context(tempfile.TemporaryDirectory(prefix="footplate-terminals-")))
        cluster = await ending.enter_async_context(open_cluster(apis=2, workers=1, environment=settings))
        client = await ending.enter_async_context(AsyncFootplate(cluster.base_urls[0], cluster.key, patience=120))
        page = await ending.enter_async_context(open_terminal_page(cluster.base_urls[1], cluster.key, port))
        trial = _Trial(cluster, client, page, home, random.Random(seed), _QUICK if quick else _FULL)
        began = time.monotonic()
        for part in (trial.check_people, trial.check_viewer, trial.check_commands, trial.check_processes):
            await part()
            print(f"  {part.__name__}: {time.monotonic() - began:.0f} s", flush=True)
    return _figure(trial)


@dataclass(slots=True)
class _Trial:
    cluster: Cluster
    client: AsyncFootplate
    page: TerminalPage
    home: Path
    rng: random.Random
    size: Size
    faults: list[str] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    """Commands by kind."""
    ends: Counter[str] = field(default_factory=Counter)
    """Shells by how they ended."""
    shown_bytes: int = 0

    async def check_people(self) -> None:
        """One at a real terminal and one in a browser share a shell, resize it, leave it, and find it again on another
        worker.
        """
        session_id = await self._create_session()
        user, page = CliUser(self.cluster, self.home), self.page
        async with Tmux(self.home) as tmux:
            command = (cli_user.PROGRAM, "attach", "--terminal", session_id)
            pane = await tmux.open_pane(command, user.environment, width=100)
            await pane.wait_for_text(r"\$\s*$")
            await page.attach(session_id)
            await page.has_message("opened")
            await page.page.type_line("echo from-the''-page")
            await page.shows("from-the-page")
            await pane.wait_for_text("from-the-page")
            await pane.press_keys("echo from-the''-pty", "Enter")
            await page.shows("from-the-pty")
            await page.page.resize(900, 500)
            await page.has_message("resized", 2)
            columns, rows = await page.size()
            await page.page.type_line("echo size $(stty size); echo kept > file")
            await pane.wait_for_text(f"size {rows} {columns}")
            await page.page.type_line("echo sleep''ing; sleep 600")
            await page.shows("sleeping")
            await page.page.press_interrupt()
            await page.shows("^C")
            await page.page.type_line("echo interrupted $?")
            await page.shows("interrupted 130")
            await page.detach()
            await pane.press_keys("C-]")
            detached = await pane.wait_for_exit()
            require(holds=detached.code == Exit.DETACHED, otherwise=f"attach exited with {detached.code}")
            await pane.close()
            pane = await tmux.open_pane(command, user.environment, width=100)
            await pane.wait_for_text("from-the-page")
            await page.attach(session_id)
            await page.shows("interrupted 130")
            opened = await page.has_message("opened")
            await self.cluster.restart_worker(0)
            await page.shows("The worker stopped.")
            again = await page.has_message("opened", 2)
            require(holds=again["terminal_id"] != opened["terminal_id"], otherwise="the terminal was not opened again")
            await page.page.type_line("cat file; echo after-the''-restart; exit")
            await page.shows("after-the-restart")
            await page.has_message("closed", 2)
            done = await pane.wait_for_exit()
            require(holds=done.code == Exit.DONE, otherwise=f"attach exited with {done.code}: {done.text[-300:]}")
            require(holds="\nkept" in done.text, otherwise=f"the file was lost: {done.text[-300:]}")
            await page.detach()

    async def check_viewer(self) -> None:
        """A member who may only view sees the same as others, and has no effect."""
        session_id = await self._create_session()
        member = await self.client.members.create(name="viewer", kind="service", roles=["viewer"])
        key = (await self.client.api_keys.create(name="viewer", member_id=member.id, roles=["viewer"])).secret
        await self.client.terminals.open(session_id)
        async with (
            AsyncFootplate(self.cluster.base_urls[1], str(key)) as watching,
            view_terminal(self.client, session_id, write=True) as first,
            view_terminal(watching, session_id) as second,
        ):
            await first.shows(b"$ ")
            await second.connection.type_keys(b"touch typed-by-a-viewer\r")
            await second.connection.resize(50, 10)
            await self.page.attach(session_id, write=False)
            await self.page.page.type_line("touch typed-by-a-viewer")
            try:
                async with watching.terminals.attach(session_id, write=True):
                    self.faults.append("a viewer attached to type")
            except Forbidden:
                pass
            await first.connection.type_keys(b"ls; stty size; seq 300; echo e''nd; exit\r")
            await first.shows(b"[exit code 0]")
            await second.shows(b"[exit code 0]")
            await self.page.shows("[exit code 0]")
            await self.page.detach()
            if first.output != second.output:
                self.faults.append("two viewers received different output")
            if b"typed-by-a-viewer" in first.output or b"10 50" in first.output:
                self.faults.append(f"a viewer's keys had an effect: {bytes(first.output[:300])!r}")

    async def check_commands(self) -> None:
        """Commands with hostile output have their own exit codes, while a browser and two connections watch."""
        session_id = await self._create_session()
        commands = hostile_commands.build_commands(self.size.commands, self.rng, large_bytes=self.size.large_bytes)
        typed_before = await self.page.sent_keys()
        async with (
            AsyncFootplate(self.cluster.base_urls[1], self.cluster.key) as other,
            view_terminal(self.client, session_id, keeps_output=False) as first,
            view_terminal(other, session_id, keeps_output=False) as second,
        ):
            await self.page.attach(session_id)  # it may type, so a response would be sent
            for start in range(0, len(commands), 50):
                batch = commands[start : start + 50]
                added = await self.client.steps.add(
                    session_id,
                    [
                        {"kind": "shell", "command": each.text, "terminal": True, "on_failure": "continue"}
                        for each in batch
                    ],
                )
                for command, step in zip(batch, added, strict=True):
                    await self._check_step(command, await self._wait_for_end(step))
            wanted = [f"exit code {command.exit_code}" for command in commands]

            async def arrived() -> bool:
                return len(first.reasons) == len(second.reasons) == len(wanted)

            if not await wait_until(arrived, 30) or first.reasons != wanted or second.reasons != wanted:
                self.faults.append(
                    f"viewers received {len(first.reasons)} and {len(second.reasons)} of {len(wanted)} exit codes"
                )
            self.shown_bytes = first.size
        if typed := (await self.page.sent_keys()).removeprefix(typed_before):
            self.faults.append(f"output made the browser type {typed[:100]!r}")
        if await self.page.title_changes():
            self.faults.append("output changed the title of the page")
        await self.page.detach()

    async def check_processes(self) -> None:
        """Shells end in all ways, and leave no process behind."""
        marker = f"31557600.{self.rng.randrange(10**9)}"
        ways = ("exit", "interrupt", "end of the session", "kill")
        numbers = iter(range(self.size.shells - self.size.shells // len(ways)))

        async def use_shells() -> None:
            for number in numbers:
                await self._use_shell(ways[number % 3], marker)

        async with asyncio.TaskGroup() as group:
            for _ in range(_SHELLS_AT_ONCE):
                group.create_task(use_shells())
        while self.ends["kill"] < self.size.shells // len(ways):
            count = min(_SHELLS_AT_ONCE, self.size.shells // len(ways) - self.ends["kill"])
            opened = [await self._start_processes(marker) for _ in range(count)]
            await self.cluster.kill_worker(0)
            await self._check_gone(marker, "a worker was killed")
            await self.cluster.restart_worker(0)
            for session_id in opened:
                await self.client.sessions.end(session_id)
            self.ends["kill"] += count
        await self._check_gone(marker, "all shells were closed")

    async def _use_shell(self, way: str, marker: str) -> None:
        session_id = await self._start_processes(marker, then=b"exit\r" if way == "exit" else b"")
        if way == "interrupt":
            await self.client.events.interrupt(session_id)
        elif way != "exit":
            await self.client.sessions.end(session_id)
        async for step in self.client.steps.list(session_id):
            await self._wait_for_end(step)
        self.ends[way] += 1

    async def _start_processes(self, marker: str, then: bytes = b"") -> str:
        """Opens a shell that starts processes which try to outlive it, and types `then` when they run."""
        session_id = await self._create_session()
        await self.client.terminals.open(session_id)
        sleep = f"sleep {marker}"
        line = f"{sleep} & setsid {sleep} & (trap '' HUP TERM INT; exec {sleep}) & nohup {sleep} & echo st''arted\r"
        async with view_terminal(self.client, session_id, write=True) as viewer:
            await viewer.shows(b"$ ")
            await viewer.connection.type_keys(line.encode())
            await viewer.shows(b"started")
            if then:
                await viewer.connection.type_keys(then)
        return session_id

    async def _check_gone(self, marker: str, when: str) -> None:
        async def are_gone() -> bool:
            return not _find_processes(marker)

        if not await wait_until(are_gone, _GONE_SECONDS):
            self.faults.append(f"{len(_find_processes(marker))} processes remain after {when}")

    async def _check_step(self, command: hostile_commands.HostileCommand, step: Step) -> None:
        self.kinds[command.kind] += 1
        found = None if step.result is None else step.result.exit_code
        state = "failed" if command.exit_code else "completed"
        if (found, step.state) != (command.exit_code, state):
            self.faults.append(f"{command.text[:200]!r} has exit code {found} and is {step.state}")

    async def _create_session(self) -> str:
        async with Client(self.cluster) as sdk:
            return await sdk.session(await sdk.agent(extra_body={"harness": "shell"}))

    async def _wait_for_end(self, step: Step) -> Step:
        async def has_ended() -> bool:
            return (await self.client.steps.retrieve(step.session_id, step.id)).state not in {"pending", "running"}

        if not await wait_until(has_ended, PATIENCE):
            raise NotHeld(f"a step did not end: {await self.client.steps.retrieve(step.session_id, step.id)}")
        return await self.client.steps.retrieve(step.session_id, step.id)


def _find_processes(marker: str) -> list[int]:
    """Returns the processes with this argument, in any sandbox."""
    found: list[int] = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                arguments = Path(entry.path, "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            found += [int(entry.name)] if marker.encode() in arguments else []
    return found


def _figure(trial: _Trial) -> Figure:
    faults, commands, shells = trial.faults, trial.kinds.total(), trial.ends.total()
    headline = f"{commands} hostile commands: all exit codes right; {shells} shells left no process"
    summary = (
        f"a person at a terminal and one with xterm.js in Chromium typed, saw the same, resized, detached and returned "
        f"after their worker was restarted; a viewer's keys had no effect; {commands} commands with hostile output of "
        f"{trial.shown_bytes / 1e6:.0f} MB: all exit codes right, and no response typed by the browser; {shells} "
        f"shells that ended by {', '.join(f'{way} ({count})' for way, count in trial.ends.items())}: "
        f"no process remained"
    )
    if faults:
        headline, summary = f"{len(faults)} faults", f"the first of {len(faults)}: {faults[0]}"
    details: dict[str, Any] = {"faults": faults[:20], "commands": {**trial.kinds}, "shells": {**trial.ends}}
    return Figure(headline=headline, summary=summary, holds=not faults, details=details)
