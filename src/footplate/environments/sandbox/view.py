"""The file system that a turn sees: its mounts, in the order in which bubblewrap makes them.

Only what is listed here is visible.
"""

import os
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from footplate.domain.errors import InvalidRequest
from footplate.domain.networks import Network
from footplate.domain.running import PlacedTree
from footplate.environments.sandbox.limits import Limits

WORKSPACE: Final = "/workspace"
HOME: Final = "/home/agent"
SESSION: Final = "/mnt/session"
CODE: Final = "/run/footplate"
DOORS: Final = "/run/footplate-proxy"
MODEL_DOOR: Final = "model.sock"
EGRESS_DOOR: Final = "egress.sock"
PORTS: Final = {EGRESS_DOOR: 3128, MODEL_DOOR: 3129}
"""The ports on a sandbox's own loopback, by the socket that they forward to."""
STAGE: Final = "/tmp"  # noqa: S108 - only the guardian sees these mounts; every machine has this directory
UID: Final = 1000
STATE: Final = {"home": HOME, "outputs": f"{SESSION}/outputs", "uploads": f"{SESSION}/uploads"}
"""Directories that a session retains between turns beside its tree, and their paths inside."""
READ_ONLY_STATE: Final = frozenset({"uploads"})
_FIRST_DESCRIPTOR: Final = 10

_TOP: Final = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_ETC: Final = (
    "alternatives", "ca-certificates", "debian_version", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime",
    "magic", "mime.types", "os-release", "pki/ca-trust", "pki/tls/certs", "protocols", "services", "ssl/certs",
    "ssl/openssl.cnf", "timezone",
)  # fmt: skip
_ETC_OF_THE_NETWORK: Final = ("gai.conf", "hosts", "nsswitch.conf", "resolv.conf")
_USERS: Final = {
    "/etc/passwd": f"agent:x:{UID}:{UID}::{HOME}:/bin/bash\nnobody:x:65534:65534::/:/usr/sbin/nologin\n",
    "/etc/group": f"agent:x:{UID}:\nnogroup:x:65534:\n",
}
_PROC_READ_ONLY: Final = ("sys", "bus", "fs", "irq", "acpi", "scsi")
"""The kernel lets root write there regardless of its capabilities, and commands of a root worker run as root in a
directory that root owns.
"""
_PROC_HIDDEN: Final = (
    "cmdline", "interrupts", "iomem", "ioports", "kallsyms", "kcore", "key-users", "keys", "kmsg", "kpagecgroup",
    "kpagecount", "kpageflags", "latency_stats", "modules", "mtrr", "pagetypeinfo", "sched_debug", "slabinfo",
    "sysrq-trigger", "timer_list", "timer_stats", "vmallocinfo",
)  # fmt: skip
"""Files that describe the machine and that no program needs."""
_HOSTS: Final = {"/etc/hosts": "127.0.0.1 localhost footplate\n::1 localhost\n"}
_OF_THE_SYSTEM: Final = ("/boot", "/dev", "/etc", "/proc", "/run", "/sys", "/usr", *(f"/{name}" for name in _TOP))
"""These directories and everything below them may not be a working directory: the machine itself runs what is written
there.
"""
_OF_EVERYBODY: Final = frozenset({"/", "/home", "/media", "/mnt", "/opt", "/srv", "/tmp", "/var", "/var/tmp"})  # noqa: S108
"""These directories may not be a working directory, but directories below them may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    tree: Path
    """The host path of the working directory."""
    state: Path
    """The host path of the directory that contains the `STATE_MOUNTS` directories."""
    named: bool = False
    """The tree is a directory that the user named. It has the same path inside; any other tree is mounted at
    /workspace.
    """
    readable: Sequence[str] = ()
    """Further paths that may be read, chosen by the operator."""
    hidden: Sequence[Path] = ()
    """Footplate's own directories. If they are inside the tree, they appear empty."""
    network: Network = field(default_factory=Network)
    doors: Path | None = None
    """The host path of the sockets that processes inside may connect to (`MountedSockets.directory`)."""
    door_names: Sequence[str] = ()
    """The names of the sockets. With a network of its own, the sandbox also forwards a loopback port to each
    (`FORWARDED_PORTS`).
    """
    limits: Limits = field(default_factory=Limits)
    trees: Sequence[PlacedTree] = ()
    """The session's projects; the first one is the tree itself."""
    seen_as: str | None = None
    """The path of the tree in a container that the operator started."""

    @property
    def shares_network(self) -> bool:
        """Whether it shares the worker's network. Otherwise it has only a loopback of its own."""
        return self.network.mode == "open"

    @property
    def ports(self) -> Sequence[str]:
        """The arguments for the init process: which loopback port leads to which socket."""
        names = () if self.shares_network else self.door_names
        return [f"{PORTS[name]}={DOORS}/{name}" for name in names]

    @property
    def shared(self) -> Iterator[tuple[Path, str, bool]]:
        """The bind mounts of the projects: source, target, and whether it is read-only."""
        for number, tree in enumerate(self.trees):
            yield tree.objects, tree.objects_seen, True
            if number > 0:
                yield tree.tree, tree.seen, False

    @property
    def root(self) -> str:
        if self.seen_as is not None:
            return self.seen_as
        return str(self.tree) if self.named else WORKSPACE


def check_named(directory: Path, hidden: Sequence[Path]) -> None:
    """Raises `InvalidRequest` for directories that cannot be a working directory, because the sandbox would protect
    nothing there.
    """
    inside = next((ours for ours in hidden if directory == ours or ours in directory.parents), None)
    system = any(directory.is_relative_to(path) for path in _OF_THE_SYSTEM)
    if system or str(directory) in _OF_EVERYBODY or inside is not None:
        why = f"it is inside Footplate's own {inside}" if inside else "it belongs to the system"
        raise InvalidRequest(
            f"The session's context.directory {str(directory)!r} cannot be used in a sandbox: {why}.",
            field="context.directory",
            help_text="Name a directory of your own, or omit it.",
        )


@dataclass(slots=True)
class Plan:
    """The arguments of bubblewrap, and the data that it reads."""

    staged: bool
    """Whether the guardian mounts the sources for a user that cannot access their paths (see `Guardian.start`)."""
    arguments: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    data: dict[int, bytes] = field(default_factory=dict)
    """By the number of the descriptor that bubblewrap reads it from."""

    def add(self, *arguments: str) -> None:
        self.arguments += arguments

    def bind(self, source: Path, target: str, *, read_only: bool = False) -> None:
        self.sources.append(str(source))
        visible_source = f"{STAGE}/{len(self.sources) - 1}" if self.staged else str(source)
        self.add("--ro-bind" if read_only else "--bind", visible_source, target)

    def descriptor(self, content: bytes) -> str:
        number = _FIRST_DESCRIPTOR + len(self.data)
        self.data[number] = content
        return str(number)


def mount(view: View, plan: Plan) -> None:
    _system(view, plan)
    for name, target in STATE.items():
        plan.bind(view.state / name, target, read_only=name in READ_ONLY_STATE)
    for path in view.readable:
        plan.bind(Path(path), path, read_only=True)
    plan.bind(view.tree, view.root)
    for source, target, read_only in view.shared:
        plan.bind(source, target, read_only=read_only)
    _protect(view, plan)
    prefix = Path(sys.base_prefix).resolve()
    if Path("/usr") not in prefix.parents and prefix != Path("/usr"):
        plan.bind(prefix, str(prefix), read_only=True)
    plan.bind(Path(__file__).parents[1], CODE, read_only=True)
    if view.doors is not None:
        plan.bind(view.doors, DOORS, read_only=True)
    if view.root != WORKSPACE:
        plan.add("--symlink", view.root, WORKSPACE)
    plan.add("--remount-ro", "/")


def python() -> str:
    """Returns the path of the worker's interpreter inside the sandbox."""
    return os.path.realpath(sys.executable)


def _system(view: View, plan: Plan) -> None:
    size = str(view.limits.memory)
    plan.add("--ro-bind", "/usr", "/usr")
    for name in _TOP:
        top = Path("/", name)
        if top.is_symlink():
            plan.add("--symlink", str(top.readlink()), str(top))
        elif top.is_dir():
            plan.add("--ro-bind", str(top), str(top))
    _proc(plan)
    plan.add("--dev", "/dev", "--perms", "1777", "--size", size, "--tmpfs", "/dev/shm")  # noqa: S108
    plan.add("--remount-ro", "/dev", "--perms", "1777", "--size", size, "--tmpfs", "/tmp")  # noqa: S108
    plan.add("--dir", "/var", "--symlink", "/tmp", "/var/tmp", "--dir", "/run", "--dir", "/etc")  # noqa: S108
    for name in (*_ETC, *(_ETC_OF_THE_NETWORK if view.shares_network else ())):
        plan.add("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")
    for path, content in (_USERS if view.shares_network else {**_USERS, **_HOSTS}).items():
        plan.add("--ro-bind-data", plan.descriptor(content.encode()), path)


def _proc(plan: Plan) -> None:
    """Mounts a /proc that contains the sandbox's own processes, and only those kernel files that programs need."""
    plan.add("--proc", "/proc")
    for name in _PROC_READ_ONLY:
        if Path("/proc", name).is_dir():
            plan.add("--ro-bind", f"/proc/{name}", f"/proc/{name}")
    for name in _PROC_HIDDEN:
        if Path("/proc", name).exists():
            plan.add("--ro-bind", "/dev/null", f"/proc/{name}")


def protected(view: View) -> Iterator[tuple[Path, Literal["pinned", "hidden", "read_only"]]]:
    """Yields the paths to protect in a directory that the user named, which may contain Footplate itself: its data is
    hidden, its code is read-only.

    The directories above them are mounted onto themselves. A mount point cannot be renamed, so it cannot be replaced.
    """
    pinned: set[Path] = set()
    for path, hide in _ours(view):
        if view.tree not in path.parents or not path.is_dir():
            continue
        for above in reversed(path.parents[: path.parents.index(view.tree)]):
            if above not in pinned:
                pinned.add(above)
                yield above, "pinned"
        yield path, "hidden" if hide else "read_only"


def _protect(view: View, plan: Plan) -> None:
    for path, how in protected(view):
        inside = seen_at(view, path)
        if how == "hidden":
            plan.add("--size", "4096", "--tmpfs", inside, "--remount-ro", inside)
        else:
            plan.bind(path, inside, read_only=how == "read_only")


def _ours(view: View) -> Iterator[tuple[Path, bool]]:
    """Yields Footplate's own directories and whether to hide them. Resolved like the tree, so that each has only one
    path.
    """
    code = {Path(sys.prefix), Path(sys.base_prefix), Path(__file__).parents[2], Path(sysconfig.get_path("purelib"))}
    for path in sorted({path.resolve() for path in code}):
        yield path, False
    for path in view.hidden:
        yield path.resolve(), True


def seen_at(view: View, path: Path) -> str:
    return str(Path(view.root, path.relative_to(view.tree)))
