"""The host's git: the only place that starts it, so that none of its commands ever does what a workspace says.

An agent writes its workspace as it likes. A git that looks for its configuration there runs programs of the agent's
choice, with the worker's rights: `core.fsmonitor`, `filter.*.clean`, textconv, hooks. So the git directory is one of
ours, named and not searched for; no configuration is read but that directory's own and what is given here; attributes
of the tree are overruled in the git directory (`write_attributes`); no hook, helper, pager, editor or remote program is
configured; and a protocol is allowed for one command by whoever needs it.
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

_SECONDS: Final = 600.0
_PIECE: Final = 1 << 16
_MOST_SAID: Final = 4096
_PROGRAMS: Final = "/usr/local/bin:/usr/bin:/bin"

_ENVIRONMENT: Final = {
    "PATH": _PROGRAMS,
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
    "safe.directory": "*",  # which directories are read is decided here, and not by whose they are
    "advice.detachedHead": "false",
    "init.defaultBranch": "main",
}
ATTRIBUTES: Final = (
    "* !filter !diff !merge !text !eol !crlf !ident !working-tree-encoding !whitespace !export-subst !export-ignore\n"
)
"""Those of a git directory overrule those of the tree: every file is what its bytes are."""


class GitFailed(Permanent):
    """git refused or broke off; `said` is its own text, which may have an agent's words in it."""

    code = "git_failed"

    def __init__(self, argv: Sequence[str], exit_code: int, said: str) -> None:
        command = next((word for word in argv if not word.startswith("-")), "")
        super().__init__(f"git {command} failed (exit code {exit_code}): {said or 'it said nothing'}")
        self.exit_code = exit_code
        self.said = said


class NoGit(Permanent):
    code = "no_git"

    def __init__(self) -> None:
        super().__init__(
            "There is no git on the worker's machine, and a session with a project needs it.",
            help_text="Install git 2.39 or later where the workers run.",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Git:
    """git on one git directory of ours."""

    git_dir: Path
    work_tree: Path | None = None
    inside: bool = False
    """Whether it runs in the work tree. Whoever writes an index does: a file that is as young as the index may have
    changed unseen, so git looks at it once more before a younger index forgets that, by its name from where git is.
    """
    index: Path | None = None
    """Another index than the git directory's own."""
    objects: Path | None = None
    """Another place for new objects than the git directory's own."""
    user: tuple[int, int] | None = None
    """Whose the files are that it writes: for a root worker, whose agents are somebody else."""
    configuration: Mapping[str, str] = field(default_factory=dict)
    """Beside what every command has, and before it: a protocol that is needed, say."""
    variables: Mapping[str, str] = field(default_factory=dict)
    largest_file: int | None = None
    """Bytes beyond which no file that it writes can grow: git then fails."""
    memory: int | None = None
    """Bytes of its own that it may have, beside the files that it maps: git then fails."""
    processor_seconds: int | None = None
    """Time of a processor that it may take: it is then ended."""
    descriptors: Sequence[int] = ()
    """Which it shares with us, for paths in `/proc/self/fd`."""

    async def run(
        self,
        *argv: str,
        stdin: bytes = b"",
        seconds: float = _SECONDS,
        accept: Sequence[int] = (0,),
    ) -> bytes:
        """What it printed. Raises `GitFailed` at an exit code that is not accepted."""
        return (await self.ask(*argv, stdin=stdin, seconds=seconds, accept=accept))[1]

    async def ask(
        self, *argv: str, stdin: bytes = b"", seconds: float = _SECONDS, accept: Sequence[int] = (0, 1)
    ) -> tuple[int, bytes]:
        """For questions that git answers by its exit code: that, and what it printed."""
        with _given(stdin) as given:
            async with self._started(argv, given) as process:
                try:
                    async with asyncio.timeout(seconds):
                        out, said = await process.communicate()
                except TimeoutError:
                    raise _too_slow(argv, seconds) from None
        code = process.returncode or 0
        if code not in accept:
            raise GitFailed(argv, code, _text(said))
        return code, out

    async def convert(self, *argv: str, source: Path, target: Path, seconds: float = _SECONDS) -> None:
        """From a file to a file, neither of them ever in our memory."""
        with source.open("rb") as read, target.open("wb") as written:
            async with self._started(argv, read.fileno(), written.fileno()) as process:
                try:
                    async with asyncio.timeout(seconds):
                        _, said = await process.communicate()
                except TimeoutError:
                    raise _too_slow(argv, seconds) from None
        if process.returncode != 0:
            raise GitFailed(argv, process.returncode or 0, _text(said))

    @contextlib.asynccontextmanager
    async def stream(
        self, *argv: str, seconds: float = _SECONDS, piece: int = _PIECE
    ) -> AsyncGenerator[AsyncIterator[bytes], None]:
        """What it prints, piece by piece and never held whole. `GitFailed` is raised at the end of the pieces.

        Who leaves early ends git.
        """
        async with (
            self._started(argv, asyncio.subprocess.DEVNULL) as process,
            contextlib.aclosing(_pieces(process, argv, seconds, piece)) as pieces,
        ):
            yield pieces

    @contextlib.asynccontextmanager
    async def _started(
        self, argv: Sequence[str], stdin: int, stdout: int = asyncio.subprocess.PIPE
    ) -> AsyncGenerator[asyncio.subprocess.Process, None]:
        command = self.command(*argv)
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                env=self.environment(),
                stdin=stdin,
                stdout=stdout,
                stderr=asyncio.subprocess.PIPE,
                cwd="/",
                pass_fds=self.descriptors,
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
                await process.communicate()  # what it had printed is read: with a full pipe nobody sees that it ended

    def command(self, *argv: str) -> list[str]:
        work_tree = [] if self.work_tree is None else [f"--work-tree={self.work_tree}"]
        as_user = [] if self.user is None or os.geteuid() != 0 else become(self.user)
        place = [] if self.work_tree is None or not self.inside else ["-C", str(self.work_tree)]
        return [*as_user, *self._limited(), program(), *place, f"--git-dir={self.git_dir}", *work_tree, *argv]

    def _limited(self) -> list[str]:
        limits = {"fsize": self.largest_file, "data": self.memory, "cpu": self.processor_seconds}
        given = [f"--{name}={most}" for name, most in limits.items() if most is not None]
        limiter = shutil.which("prlimit", path=_PROGRAMS)
        return [limiter, *given, "--"] if given and limiter else []  # Linux alone has it

    def environment(self) -> dict[str, str]:
        """All of it: nothing is inherited from the worker, whose environment has keys."""
        configuration = {**_CONFIGURATION, **self.configuration}
        named = {"GIT_INDEX_FILE": self.index, "GIT_OBJECT_DIRECTORY": self.objects}
        environment = {**_ENVIRONMENT, **{name: str(path) for name, path in named.items() if path is not None}}
        environment["GIT_CONFIG_COUNT"] = str(len(configuration))
        for number, (key, value) in enumerate(configuration.items()):
            environment[f"GIT_CONFIG_KEY_{number}"] = key
            environment[f"GIT_CONFIG_VALUE_{number}"] = value
        return {**environment, **self.variables}


def write_attributes(git_dir: Path) -> None:
    """Without this file a filter that the tree names would be looked for; with it, none is."""
    info = git_dir / "info"
    info.mkdir(exist_ok=True)
    (info / "attributes").write_text(ATTRIBUTES)


@contextlib.contextmanager
def _given(content: bytes) -> Iterator[int]:
    """What git reads, as a file: it may have ended before it took anything out of a pipe, and uvloop raises then."""
    if not content:
        yield asyncio.subprocess.DEVNULL
        return
    with open(os.memfd_create("given"), "wb") as file:  # noqa: PTH123 - a descriptor has no path
        file.write(content)
        file.flush()
        file.seek(0)
        yield file.fileno()


async def _pieces(
    process: asyncio.subprocess.Process, argv: Sequence[str], seconds: float, piece: int
) -> AsyncGenerator[bytes, None]:
    assert process.stdout is not None
    assert process.stderr is not None
    end = asyncio.get_running_loop().time() + seconds
    said = asyncio.create_task(_end_of(process.stderr))
    try:
        while data := await _by(end, process.stdout.read(piece), argv, seconds):
            yield data
        code = await _by(end, process.wait(), argv, seconds)
        if code != 0:
            raise GitFailed(argv, code, _text(await said))
    finally:
        said.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await said


async def _by(end: float, waited_for: Coroutine[None, None, T], argv: Sequence[str], seconds: float) -> T:
    try:
        async with asyncio.timeout_at(end):
            return await waited_for
    except TimeoutError:
        raise _too_slow(argv, seconds) from None


async def _end_of(stream: asyncio.StreamReader) -> bytes:
    """All is read, so that nobody waits for us; the end is what says why."""
    kept = b""
    while data := await stream.read(_PIECE):
        kept = (kept + data)[-_MOST_SAID:]
    return kept


def program() -> str:
    found = shutil.which("git", path=_PROGRAMS)
    if found is None:
        raise NoGit
    return found


def become(user: tuple[int, int], *, reaches_all: bool = True) -> list[str]:
    """For a root worker: another user, who still reaches what is ours by one capability. The files that git writes are
    theirs from the start; were they given away afterwards, its index would hold every one of them to be changed.
    """
    uid, gid = user
    rights = "-all,+dac_override" if reaches_all else "-all"
    return [
        shutil.which("setpriv", path=_PROGRAMS) or "/usr/bin/setpriv",
        *("--securebits", "+no_setuid_fixup"),
        *(f"--reuid={uid}", f"--regid={gid}", "--clear-groups"),
        *(f"--inh-caps={rights}", f"--ambient-caps={rights}"),
        "--",
    ]


def _too_slow(argv: Sequence[str], seconds: float) -> Unavailable:
    return Unavailable(f"git {' '.join(argv[:1])} took longer than {seconds:g} s and was ended.")


def _text(said: bytes) -> str:
    return said[-_MOST_SAID:].decode("utf-8", "replace").strip()
