"""Base class of all environments: manages the lease, the guardian process, the persistent shell and other programs.

The guardian process starts the turn's commands, and kills them when the lease expires. A subclass implements file
access, and may start commands through another process (`_get_spawner`).
"""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Final

from footplate.domain.errors import Permanent, Unavailable
from footplate.domain.ports.harness import CommandResult, Endpoint, Environment, Process
from footplate.domain.ports.terminals import TerminalProcess, TerminalSize
from footplate.domain.sessions.shell_state import NEW_SHELL, ShellState, describe_shell
from footplate.environments.leases import Lease
from footplate.environments.processes import command_runner
from footplate.environments.processes.guardian_client import Guardian
from footplate.environments.processes.output_capture import DEFAULT_OUTPUT_LIMIT, CapturedOutput
from footplate.environments.processes.persistent_shell import BASH, Shell, ShellDialect, ShellReport
from footplate.environments.processes.port_ranges import PORTS_VARIABLE, PortRange
from footplate.environments.processes.spawner_client import Spawner
from footplate.environments.processes.streaming_process import StreamingProcess
from footplate.lease_clock import lease_clock

DEFAULT_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
DEFAULT_GRACE: Final = 5.0


class BaseEnvironment(Environment):
    backend: ClassVar[str]
    """The name of the backend."""

    """An environment for one turn. The turn calls `renew` while it holds its lease, and `aclose` at its end."""

    def __init__(
        self,
        root: str,
        *,
        deadline: float,
        home: str,
        working_directory: str | None = None,
        env: Mapping[str, str] | None = None,
        grace: float = DEFAULT_GRACE,
        output_limit: int = DEFAULT_OUTPUT_LIMIT,
        lease: Lease | None = None,
    ) -> None:
        """`deadline` is the end of the lease, by `lease_clock`. None of the worker's own environment variables is
        passed on.

        `lease` is the host's record of the turn while one of its processes may be alive. Without it, nothing is cleaned
        up after a worker that was killed.
        """
        self._root = root
        self._working_directory = working_directory or root
        self._lease = lease
        self._deadline = deadline
        self._env = {"PATH": DEFAULT_PATH, "HOME": home, "LANG": "C.UTF-8", "TERM": "dumb", **(env or {})}
        self._grace = grace
        self._output_limit = output_limit
        self._guardian: Guardian | None = None
        self._ports: PortRange | None = None
        self._start_lock = asyncio.Lock()
        self._shell: Shell | None = None
        self._shell_lock = asyncio.Lock()
        self._shell_state = NEW_SHELL
        self._described_report: ShellReport | None = None
        self._outputs: list[CapturedOutput] = []
        self._processes: list[StreamingProcess] = []
        self._closed = False
        self.has_run_commands = False

    async def ensure_open(self) -> None:
        """Does nothing: this environment is open from the start."""

    @property
    def root(self) -> str:
        return self._root

    @property
    def working_directory(self) -> str:
        return self._working_directory

    @property
    def home(self) -> str:
        return self._env["HOME"]

    @property
    def scratch(self) -> str:
        """The directory is inside that of the lease, so that the reaper removes it after a worker that was killed."""
        directory = Path(self._env["HOME"], ".footplate") if self._lease is None else self._lease.directory
        return str(directory / "scratch")

    @property
    def was_used(self) -> bool:
        return self._guardian is not None

    @property
    def platform(self) -> str:
        return "unsandboxed"

    @property
    def shell_state(self) -> ShellState:
        return self._shell_state

    def restore_shell(self, state: ShellState) -> None:
        if self._shell is not None and not self._shell.alive:
            self._discard_output(self._shell.retire())
            self._shell = None
        self._shell_state = state

    def translate_endpoint(self, endpoint: Endpoint) -> Endpoint:
        return endpoint

    def renew(self, deadline: float) -> None:
        """Extends the lease. `deadline` must count from before the database was asked, never from after."""
        self._deadline = max(self._deadline, deadline)
        if self._lease is not None:
            self._lease.renew(self._deadline)
        if self._guardian is not None:
            self._guardian.renew(self._deadline)

    async def aclose(self) -> None:
        """Kills all processes of the turn. Safe to call again."""
        self._closed = True
        clean = await self._release_resources()
        if self._lease is not None:
            self._lease.end(clean=clean)

    async def _release_resources(self) -> bool:
        """Releases everything except the lease, which is ended last. Returns False if something could not
        be removed.
        """
        async with self._start_lock:
            if self._guardian is not None:
                await self._guardian.close()
            if self._ports is not None:
                self._ports.release()
        if self._shell is not None:
            self._shell.close()
        for output in self._outputs:
            output.close()
        self._outputs.clear()
        for process in self._processes:
            process.close()
        self._processes.clear()
        return True

    async def shell(self, command: str, *, timeout: float) -> CommandResult:  # noqa: ASYNC109 - as in the port
        if "\0" in command:
            return CommandResult(exit_code=2, stdout=b"", stderr=b"A command cannot contain a NUL byte.\n", duration=0)
        async with self._shell_lock:
            shell = await self._ensure_shell()
            try:
                return await shell.run(command, time_limit=timeout, grace=self._grace)
            finally:
                self._update_shell_state(shell)

    async def restart_shell(self) -> None:
        """Kills the shell, also while a command is running."""
        self._forget_shell_state()
        if self._shell is not None and self._shell.alive:
            await self._shell.kill()

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        timeout: float = 60,  # noqa: ASYNC109 - as in the port
    ) -> CommandResult:
        self.has_run_commands = True
        spawner = await self._ensure_spawner()
        output = CapturedOutput(self._output_limit)
        try:
            return await command_runner.run_command(
                spawner,
                argv,
                cwd=self._root,
                env=self._env,
                stdin=stdin,
                time_limit=timeout,
                grace=self._grace,
                output=output,
            )
        finally:
            self._discard_output(output)

    async def shell_directory(self) -> str | None:
        """Returns the shell's current directory as the kernel reports it. The shell itself is not asked, because a
        command may have redefined its builtins.
        """
        async with self._shell_lock:
            if self._shell is None and self._shell_state.directory is not None:
                await self._ensure_shell()
            if self._shell is None or not self._shell.alive:
                return self._working_directory
            resolved = (await self.resolve_paths([f"/proc/{self._shell.pid}/cwd"]))[0]
        return None if resolved is None or resolved.startswith("/proc/") else resolved

    async def start(self, argv: Sequence[str], *, env: Mapping[str, str]) -> Process:
        self.has_run_commands = True
        spawner = await self._ensure_spawner()
        process = await StreamingProcess.start(spawner, argv, cwd=self._working_directory, env={**self._env, **env})
        self._processes.append(process)
        return process

    async def open_terminal(self, command: str | None, size: TerminalSize) -> TerminalProcess:  # noqa: ARG002
        """Refuses: the keys of a person are bounded by nothing but the enclosure, and here is none."""
        raise Permanent(
            "A terminal needs a sandbox or a container, and this worker runs commands without one.",
            help_text="Set FOOTPLATE_ENVIRONMENT to sandbox or docker.",
        )

    async def end_other_processes(self, *, keep: Process) -> None:
        spared = [process.command for process in self._processes if process is keep]
        spawner = await self._ensure_spawner()
        await spawner.end_other_commands(spared)

    async def _start_leased_guardian(self) -> Guardian:
        if self._ports is None and (ports := PortRange.reserve(self._env.get("FOOTPLATE_SESSION_ID", self._root))):
            self._ports, self._env[PORTS_VARIABLE] = ports, str(ports)
        if self._lease is None:
            return await self._start_guardian("-")
        self._lease.begin(self._deadline, self._cgroup_directories())
        guardian = await self._start_guardian(self._lease.id)
        self._lease.record_guardian(guardian.pid, self._deadline)
        return guardian

    def _cgroup_directories(self) -> Sequence[Path]:
        """Returns the directories in which the backend creates control groups."""
        return ()

    async def _start_guardian(self, lease_id: str) -> Guardian:
        """Starts the guardian with the options of the backend."""
        return await Guardian.start(self._deadline, lease_id=lease_id)

    async def _get_spawner(self, guardian: Guardian) -> Spawner:
        """Returns the process that starts the commands. Called under the lock, so that only one start runs
        at a time.
        """
        return guardian

    async def _detect_dialect(self, spawner: Spawner) -> ShellDialect:
        """Returns the dialect of the shell that is available."""
        del spawner
        return BASH

    async def _ensure_spawner(self) -> Spawner:
        async with self._start_lock:
            self._check_lease()
            if self._guardian is None:
                self._guardian = await self._start_leased_guardian()
                self._guardian.renew(self._deadline)  # it may have been extended in the meantime
            return await self._get_spawner(self._guardian)

    async def _ensure_shell(self) -> Shell:
        spawner = await self._ensure_spawner()
        if self._shell is not None and not self._shell.alive:
            self._discard_output(self._shell.retire())
            self._shell = None
            self._forget_shell_state()
        if self._shell is None:
            self._shell = await self._start_shell(spawner)
            if self._shell_state != NEW_SHELL:
                directory = self._shell_state.locate(root=self._root, home=self.home)
                variables = self._shell_state.select_variables(self.backend, self._env)
                await self._shell.restore(directory, variables)
                if not self._shell.alive:  # the state broke it
                    self._discard_output(self._shell.retire())
                    self._forget_shell_state()
                    self._shell = await self._start_shell(spawner)
        return self._shell

    async def _start_shell(self, spawner: Spawner) -> Shell:
        self.has_run_commands = True
        return await Shell.start(
            spawner,
            cwd=self._working_directory,
            env=self._env,
            output_limit=self._output_limit,
            dialect=await self._detect_dialect(spawner),
        )

    def _forget_shell_state(self) -> None:
        """The next shell starts as in a new session, and its first report is stored even if it equals the last one."""
        self._shell_state, self._described_report = NEW_SHELL, None

    def _update_shell_state(self, shell: Shell) -> None:
        """A shell that ended leaves no state: the next one starts as in a new session."""
        if not shell.alive:
            self._forget_shell_state()
        elif shell.report is not None and shell.report != self._described_report:
            self._described_report = shell.report
            self._shell_state = describe_shell(
                shell.report.directory,
                shell.report.parse_variables(),
                previous=self._shell_state,
                backend=self.backend,
                initial_variables=self._env,
                roots={"root": self._root, "home": self.home},
                initial_directory=self._working_directory,
            )

    def _absolute_path(self, path: str) -> str:
        return str(Path(self._working_directory, path))

    def _discard_output(self, output: CapturedOutput) -> None:
        """Continues to read and discard the output of background jobs, which would otherwise block or die when they
        print.
        """
        output.discard()
        self._outputs = [other for other in (*self._outputs, output) if other.is_open]

    def _check_lease(self) -> None:
        if self._closed:
            raise Unavailable("The environment of this turn is already closed.")
        if lease_clock() >= self._deadline:
            raise Unavailable("The lease of this turn has expired.")
