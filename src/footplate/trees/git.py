"""Runs git on the host. No other module starts git, so git never uses settings that an agent wrote into a working tree.

Such settings (`core.fsmonitor`, `filter.*.clean`, textconv, hooks) could run the agent's programs with the rights of
the worker.
"""

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

from footplate.domain.errors import Permanent, Unavailable

T = TypeVar("T")

_TIMEOUT_SECONDS: Final = 600.0
_CHUNK_BYTES: Final = 1 << 16
_MAX_OUTPUT_BYTES: Final = 4096
_PROGRAM_PATH: Final = "/usr/local/bin:/usr/bin:/bin"

_ENVIRONMENT: Final = {
    "PATH": _PROGRAM_PATH,
    "HOME": "/nonexistent",
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "/bin/false",
    "GIT_SSH_COMMAND": "/bin/false",
    "GIT_EDITOR": "/bin/false",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_PROTOCOL_FROM_USER": "0",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_CEILING_DIRECTORIES": "/",
}
_CONFIGURATION: Final = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.attributesFile": os.devnull,
    "core.excludesFile": os.devnull,
    "core.sshCommand": "/bin/false",
    "core.askPass": "/bin/false",
    "core.pager": "cat",
    "core.autocrlf": "false",
    "core.safecrlf": "false",
    "core.fileMode": "true",
    "core.symlinks": "true",
    "core.quotePath": "true",
    "core.alternateRefsCommand": "/bin/false",
    "credential.helper": "",
    "diff.external": "",
    "diff.autoRefreshIndex": "false",
    "fetch.recurseSubmodules": "false",
    "submodule.recurse": "false",
    "status.submoduleSummary": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "http.followRedirects": "false",
    "protocol.allow": "never",
    "safe.directory": "*",  # this module decides which directories are read, regardless of their owner
    "advice.detachedHead": "false",
    "init.defaultBranch": "main",
}
ATTRIBUTES: Final = (
    "* !filter !diff !merge !text !eol !crlf !ident !working-tree-encoding !whitespace !export-subst !export-ignore\n"
)
"""Attributes in the git directory override those in the tree, so every file is stored byte for byte."""


class GitFailed(Permanent):
    """git exited with an error. `output` is git's own output, which may contain text written by an agent."""

    code = "git_failed"

    def __init__(self, argv: Sequence[str], exit_code: int, output: str) -> None:
        command = next((argument for argument in argv if not argument.startswith("-")), "")
        super().__init__(f"git {command} failed (exit code {exit_code}): {output or 'no output'}")
        self.exit_code = exit_code
        self.output = output


class NoGit(Permanent):
    code = "no_git"

    def __init__(self) -> None:
        super().__init__(
            "git is not installed on the worker's machine. Sessions with projects require it.",
            help_text="Install git 2.39 or later on every worker machine.",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Git:
    """Runs git commands on one git directory owned by the host.

    - The git directory is named explicitly and never searched for.
    - Only the configuration of that directory and the settings in this module are read.
    - Attributes in the tree are overridden in the git directory (`write_attributes`).
    - No hook, helper, pager, editor or remote program is configured.
    - A caller that needs a transport protocol allows it for a single command.
    """

    git_dir: Path
    work_tree: Path | None = None
    runs_in_work_tree: bool = False
    """Whether git runs inside the working tree. Commands that write an index need this: git rechecks files that are
    as recent as the index, by their path relative to git's working directory.
    """
    index: Path | None = None
    """An index file to use instead of the git directory's own."""
    object_directory: Path | None = None
    """A directory for new objects to use instead of the git directory's own."""
    user: tuple[int, int] | None = None
    """The user and group that own the files git writes. A root worker sets this, because agents run as another user."""
    configuration: Mapping[str, str] = field(default_factory=dict)
    """Settings in addition to the defaults, which they override: for example, a protocol that one command needs."""
    variables: Mapping[str, str] = field(default_factory=dict)
    max_file_bytes: int | None = None
    """Maximum size in bytes of any file that git writes. git fails beyond it."""
    max_memory_bytes: int | None = None
    """Maximum bytes of private memory, not counting mapped files. git fails beyond it."""
    max_cpu_seconds: int | None = None
    """Maximum processor time in seconds. git is killed beyond it."""
    inherited_descriptors: Sequence[int] = ()
    """File descriptors that git inherits, for paths in `/proc/self/fd`."""

    async def run(
        self,
        *argv: str,
        stdin: bytes = b"",
        seconds: float = _TIMEOUT_SECONDS,
        accept: Sequence[int] = (0,),
    ) -> bytes:
        """Runs a command and returns its output. Raises `GitFailed` if the exit code is not in `accept`."""
        return (await self.run_with_exit_code(*argv, stdin=stdin, seconds=seconds, accept=accept))[1]

    async def run_with_exit_code(
        self, *argv: str, stdin: bytes = b"", seconds: float = _TIMEOUT_SECONDS, accept: Sequence[int] = (0, 1)
    ) -> tuple[int, bytes]:
        """Runs a command whose exit code carries information. Returns the exit code and the output."""
        with _input_file(stdin) as input_file:
            async with self._start_process(argv, input_file) as process:
                try:
                    async with asyncio.timeout(seconds):
                        out, error_output = await process.communicate()
                except TimeoutError:
                    raise _timeout_error(argv, seconds) from None
        code = process.returncode or 0
        if code not in accept:
            raise GitFailed(argv, code, _decode_tail(error_output))
        return code, out

    async def run_with_files(self, *argv: str, source: Path, target: Path, seconds: float = _TIMEOUT_SECONDS) -> None:
        """Runs a command that reads one file and writes another. Neither file is loaded into memory."""
        with source.open("rb") as read, target.open("wb") as written:
            async with self._start_process(argv, read.fileno(), written.fileno()) as process:
                try:
                    async with asyncio.timeout(seconds):
                        _, error_output = await process.communicate()
                except TimeoutError:
                    raise _timeout_error(argv, seconds) from None
        if process.returncode != 0:
            raise GitFailed(argv, process.returncode or 0, _decode_tail(error_output))

    @contextlib.asynccontextmanager
    async def stream_output(
        self, *argv: str, seconds: float = _TIMEOUT_SECONDS, chunk_bytes: int = _CHUNK_BYTES
    ) -> AsyncGenerator[AsyncIterator[bytes], None]:
        """Streams the output in chunks and never holds all of it. Raises `GitFailed` after the last chunk.

        Leaving the context early kills git.
        """
        async with (
            self._start_process(argv, asyncio.subprocess.DEVNULL) as process,
            contextlib.aclosing(_read_chunks(process, argv, seconds, chunk_bytes)) as chunks,
        ):
            yield chunks

    @contextlib.asynccontextmanager
    async def _start_process(
        self, argv: Sequence[str], stdin: int, stdout: int = asyncio.subprocess.PIPE
    ) -> AsyncGenerator[asyncio.subprocess.Process, None]:
        command = self.build_command(*argv)
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                env=self.build_environment(),
                stdin=stdin,
                stdout=stdout,
                stderr=asyncio.subprocess.PIPE,
                cwd="/",
                pass_fds=self.inherited_descriptors,
                start_new_session=True,
            )
        except FileNotFoundError:
            raise NoGit from None
        try:
            yield process
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.communicate()  # drain the pipes: the end of a process with a full pipe goes unnoticed

    def build_command(self, *argv: str) -> list[str]:
        work_tree = [] if self.work_tree is None else [f"--work-tree={self.work_tree}"]
        as_user = [] if self.user is None or os.geteuid() != 0 else switch_user_prefix(self.user)
        change_directory = [] if self.work_tree is None or not self.runs_in_work_tree else ["-C", str(self.work_tree)]
        return [
            *as_user,
            *self._limit_prefix(),
            find_git(),
            *change_directory,
            f"--git-dir={self.git_dir}",
            *work_tree,
            *argv,
        ]

    def _limit_prefix(self) -> list[str]:
        limits = {"fsize": self.max_file_bytes, "data": self.max_memory_bytes, "cpu": self.max_cpu_seconds}
        options = [f"--{name}={maximum}" for name, maximum in limits.items() if maximum is not None]
        limiter = shutil.which("prlimit", path=_PROGRAM_PATH)
        return [limiter, *options, "--"] if options and limiter else []  # prlimit exists only on Linux

    def build_environment(self) -> dict[str, str]:
        """Returns the complete environment. Nothing is inherited from the worker, whose environment contains keys."""
        configuration = {**_CONFIGURATION, **self.configuration}
        paths = {"GIT_INDEX_FILE": self.index, "GIT_OBJECT_DIRECTORY": self.object_directory}
        environment = {**_ENVIRONMENT, **{name: str(path) for name, path in paths.items() if path is not None}}
        environment["GIT_CONFIG_COUNT"] = str(len(configuration))
        for number, (key, value) in enumerate(configuration.items()):
            environment[f"GIT_CONFIG_KEY_{number}"] = key
            environment[f"GIT_CONFIG_VALUE_{number}"] = value
        return {**environment, **self.variables}


def write_attributes(git_dir: Path) -> None:
    """Writes the attributes file. Without it, git would look for filters that the tree names."""
    info = git_dir / "info"
    info.mkdir(exist_ok=True)
    (info / "attributes").write_text(ATTRIBUTES)


@contextlib.contextmanager
def _input_file(content: bytes) -> Iterator[int]:
    """Provides git's input as a file. With a pipe, git may exit before it reads any input, and uvloop then raises."""
    if not content:
        yield asyncio.subprocess.DEVNULL
        return
    with open(os.memfd_create("given"), "wb") as file:  # noqa: PTH123 - a descriptor has no path
        file.write(content)
        file.flush()
        file.seek(0)
        yield file.fileno()


async def _read_chunks(
    process: asyncio.subprocess.Process, argv: Sequence[str], seconds: float, chunk_bytes: int
) -> AsyncGenerator[bytes, None]:
    assert process.stdout is not None
    assert process.stderr is not None
    end = asyncio.get_running_loop().time() + seconds
    error_output = asyncio.create_task(_read_tail(process.stderr))
    try:
        while data := await _await_until(end, process.stdout.read(chunk_bytes), argv, seconds):
            yield data
        code = await _await_until(end, process.wait(), argv, seconds)
        if code != 0:
            raise GitFailed(argv, code, _decode_tail(await error_output))
    finally:
        error_output.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await error_output


async def _await_until(end: float, operation: Coroutine[None, None, T], argv: Sequence[str], seconds: float) -> T:
    try:
        async with asyncio.timeout_at(end):
            return await operation
    except TimeoutError:
        raise _timeout_error(argv, seconds) from None


async def _read_tail(stream: asyncio.StreamReader) -> bytes:
    """Reads the whole stream, so that git never blocks, and returns its end, which states the error."""
    tail = b""
    while data := await stream.read(_CHUNK_BYTES):
        tail = (tail + data)[-_MAX_OUTPUT_BYTES:]
    return tail


def find_git() -> str:
    found = shutil.which("git", path=_PROGRAM_PATH)
    if found is None:
        raise NoGit
    return found


def switch_user_prefix(user: tuple[int, int], *, bypasses_permissions: bool = True) -> list[str]:
    """Returns a command prefix that switches a root worker to another user who keeps one capability, to access the
    host's files. git then creates its files with the right owner. Changing the owner afterwards would make the index
    treat every file as changed.
    """
    uid, gid = user
    capabilities = "-all,+dac_override" if bypasses_permissions else "-all"
    return [
        shutil.which("setpriv", path=_PROGRAM_PATH) or "/usr/bin/setpriv",
        *("--securebits", "+no_setuid_fixup"),
        *(f"--reuid={uid}", f"--regid={gid}", "--clear-groups"),
        *(f"--inh-caps={capabilities}", f"--ambient-caps={capabilities}"),
        "--",
    ]


def _timeout_error(argv: Sequence[str], seconds: float) -> Unavailable:
    return Unavailable(f"git {' '.join(argv[:1])} took longer than {seconds:g} s and was killed.")


def _decode_tail(output: bytes) -> str:
    return output[-_MAX_OUTPUT_BYTES:].decode("utf-8", "replace").strip()
