"""Defines the file system that a turn sees in its sandbox or container, as an ordered list of mounts.

In a sandbox, a path that is not in this list is not visible to the turn's commands.
"""

import os
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from footplate.domain.errors import InvalidRequest
from footplate.domain.network.command_network_access import Network
from footplate.domain.ports.engine import CheckedOutTree
from footplate.environments.isolation.resource_limits import SandboxLimits

WORKSPACE_MOUNT: Final = "/workspace"
HOME_MOUNT: Final = "/home/agent"
SESSION_MOUNT: Final = "/mnt/session"
CODE_MOUNT: Final = "/run/footplate"
SOCKETS_MOUNT: Final = "/run/footplate-proxy"
MODEL_SOCKET: Final = "model.sock"
EGRESS_SOCKET: Final = "egress.sock"
FORWARDED_PORTS: Final = {EGRESS_SOCKET: 3128, MODEL_SOCKET: 3129}
"""The ports on a sandbox's own loopback, by the socket that they forward to."""
STAGING_DIRECTORY: Final = "/tmp"  # noqa: S108 - only the guardian sees these mounts; every machine has this directory
INSIDE_UID: Final = 1000
OUTPUTS_MOUNT: Final = f"{SESSION_MOUNT}/outputs"
OUTPUTS_VARIABLE: Final = "FOOTPLATE_OUTPUTS"
"""The environment variable with the path of the output directory, which differs if there is nothing to mount it in."""
STATE_MOUNTS: Final = {"home": HOME_MOUNT, "outputs": OUTPUTS_MOUNT, "uploads": f"{SESSION_MOUNT}/uploads"}
"""Directories that a session retains between turns beside its tree, and their paths inside."""
HOME: Final = "home"
OUTPUTS: Final = "outputs"
"""The names of HOME and of the output directory in a session's state."""
READ_ONLY_STATE: Final = frozenset({"uploads"})
_FIRST_DESCRIPTOR: Final = 10

_TOP: Final = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_ETC: Final = (
    "alternatives", "ca-certificates", "debian_version", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime",
    "magic", "mime.types", "os-release", "pki/ca-trust", "pki/tls/certs", "protocols", "services", "ssl/certs",
    "ssl/openssl.cnf", "timezone",
)  # fmt: skip
_NETWORK_ETC: Final = ("gai.conf", "hosts", "nsswitch.conf", "resolv.conf")
_USERS: Final = {
    "/etc/passwd": f"agent:x:{INSIDE_UID}:{INSIDE_UID}::{HOME_MOUNT}:/bin/bash\n"
    "nobody:x:65534:65534::/:/usr/sbin/nologin\n",
    "/etc/group": f"agent:x:{INSIDE_UID}:\nnogroup:x:65534:\n",
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
_SYSTEM_DIRECTORIES: Final = ("/boot", "/dev", "/etc", "/proc", "/run", "/sys", "/usr", *(f"/{name}" for name in _TOP))
"""These directories and everything below them may not be a working directory: the machine itself runs what is written
there.
"""
_SHARED_DIRECTORIES: Final = frozenset({"/", "/home", "/media", "/mnt", "/opt", "/srv", "/tmp", "/var", "/var/tmp"})  # noqa: S108
"""These directories may not be a working directory, but directories below them may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesystemView:
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
    sockets: Path | None = None
    """The host path of the sockets that processes inside may connect to (`MountedSockets.directory`)."""
    socket_names: Sequence[str] = ()
    """The names of the sockets. With a network of its own, the sandbox also forwards a loopback port to each
    (`FORWARDED_PORTS`).
    """
    limits: SandboxLimits = field(default_factory=SandboxLimits)
    trees: Sequence[CheckedOutTree] = ()
    """The session's projects; the first one is the tree itself."""
    root_inside: str | None = None
    """The path of the tree in a container that the operator started."""
    subdirectory: str = ""
    """The directory in the tree in which programs start. Empty: the tree itself."""

    @property
    def shares_network(self) -> bool:
        """Whether it shares the worker's network. Otherwise it has only a loopback of its own."""
        return self.network.mode == "open"

    @property
    def ports(self) -> Sequence[str]:
        """The arguments for the init process: which loopback port leads to which socket."""
        names = () if self.shares_network else self.socket_names
        return [f"{FORWARDED_PORTS[name]}={SOCKETS_MOUNT}/{name}" for name in names]

    @property
    def project_mounts(self) -> Iterator[tuple[Path, str, bool]]:
        """The bind mounts of the projects: source, target, and whether it is read-only."""
        for number, tree in enumerate(self.trees):
            yield tree.objects, tree.objects_inside_path, True
            if number > 0:
                yield tree.tree, tree.inside_path, False

    @property
    def root(self) -> str:
        if self.root_inside is not None:
            return self.root_inside
        return str(self.tree) if self.named else WORKSPACE_MOUNT


def check_named_directory(directory: Path, hidden: Sequence[Path]) -> None:
    """Raises `InvalidRequest` for directories that cannot be a working directory, because the sandbox would protect
    nothing there.
    """
    own_directory = next((ours for ours in hidden if directory == ours or ours in directory.parents), None)
    system = any(directory.is_relative_to(path) for path in _SYSTEM_DIRECTORIES)
    if system or str(directory) in _SHARED_DIRECTORIES or own_directory is not None:
        reason = (
            f"it is inside Footplate's own directory {own_directory}"
            if own_directory
            else "it is a system or shared directory"
        )
        raise InvalidRequest(
            f"The session's context.directory {str(directory)!r} cannot be used in a sandbox: {reason}.",
            field="context.directory",
            help_text="Use another directory, or omit the field.",
        )


@dataclass(slots=True)
class BubblewrapPlan:
    """The arguments of bubblewrap, and the data that it reads."""

    staged: bool
    """Whether the guardian mounts the sources for a user that cannot access their paths (see `Guardian.start`)."""
    arguments: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    data: dict[int, bytes] = field(default_factory=dict)
    """By the number of the descriptor that bubblewrap reads it from."""

    def add_arguments(self, *arguments: str) -> None:
        self.arguments += arguments

    def bind(self, source: Path, target: str, *, read_only: bool = False) -> None:
        self.sources.append(str(source))
        visible_source = f"{STAGING_DIRECTORY}/{len(self.sources) - 1}" if self.staged else str(source)
        self.add_arguments("--ro-bind" if read_only else "--bind", visible_source, target)

    def add_data(self, content: bytes) -> str:
        number = _FIRST_DESCRIPTOR + len(self.data)
        self.data[number] = content
        return str(number)


def add_mounts(view: FilesystemView, plan: BubblewrapPlan) -> None:
    _add_system_mounts(view, plan)
    for name, target in STATE_MOUNTS.items():
        plan.bind(view.state / name, target, read_only=name in READ_ONLY_STATE)
    for path in view.readable:
        plan.bind(Path(path), path, read_only=True)
    plan.bind(view.tree, view.root)
    for source, target, read_only in view.project_mounts:
        plan.bind(source, target, read_only=read_only)
    _add_protection(view, plan)
    prefix = Path(sys.base_prefix).resolve()
    if Path("/usr") not in prefix.parents and prefix != Path("/usr"):
        plan.bind(prefix, str(prefix), read_only=True)
    plan.bind(Path(__file__).parents[1] / "programs", CODE_MOUNT, read_only=True)
    if view.sockets is not None:
        plan.bind(view.sockets, SOCKETS_MOUNT, read_only=True)
    if view.root != WORKSPACE_MOUNT:
        plan.add_arguments("--symlink", view.root, WORKSPACE_MOUNT)
    plan.add_arguments("--remount-ro", "/")


def python_path() -> str:
    """Returns the path of the worker's interpreter inside the sandbox."""
    return os.path.realpath(sys.executable)


def _add_system_mounts(view: FilesystemView, plan: BubblewrapPlan) -> None:
    size = str(view.limits.memory)
    plan.add_arguments("--ro-bind", "/usr", "/usr")
    for name in _TOP:
        top = Path("/", name)
        if top.is_symlink():
            plan.add_arguments("--symlink", str(top.readlink()), str(top))
        elif top.is_dir():
            plan.add_arguments("--ro-bind", str(top), str(top))
    _add_proc_mounts(plan)
    plan.add_arguments("--dev", "/dev", "--perms", "1777", "--size", size, "--tmpfs", "/dev/shm")  # noqa: S108
    plan.add_arguments("--remount-ro", "/dev", "--perms", "1777", "--size", size, "--tmpfs", "/tmp")  # noqa: S108
    plan.add_arguments("--dir", "/var", "--symlink", "/tmp", "/var/tmp", "--dir", "/run", "--dir", "/etc")  # noqa: S108
    for name in (*_ETC, *(_NETWORK_ETC if view.shares_network else ())):
        plan.add_arguments("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")
    for path, content in (_USERS if view.shares_network else {**_USERS, **_HOSTS}).items():
        plan.add_arguments("--ro-bind-data", plan.add_data(content.encode()), path)


def _add_proc_mounts(plan: BubblewrapPlan) -> None:
    """Mounts a /proc that contains the sandbox's own processes, and only those kernel files that programs need."""
    plan.add_arguments("--proc", "/proc")
    for name in _PROC_READ_ONLY:
        if Path("/proc", name).is_dir():
            plan.add_arguments("--ro-bind", f"/proc/{name}", f"/proc/{name}")
    for name in _PROC_HIDDEN:
        if Path("/proc", name).exists():
            plan.add_arguments("--ro-bind", "/dev/null", f"/proc/{name}")


def find_protected_paths(view: FilesystemView) -> Iterator[tuple[Path, Literal["pinned", "hidden", "read_only"]]]:
    """Yields the paths to protect in a directory that the user named, which may contain Footplate itself: its data is
    hidden, its code is read-only.

    The directories above them are mounted onto themselves. A mount point cannot be renamed, so it cannot be replaced.
    """
    pinned: set[Path] = set()
    for path, hide in _footplate_directories(view):
        if view.tree not in path.parents or not path.is_dir():
            continue
        for above in reversed(path.parents[: path.parents.index(view.tree)]):
            if above not in pinned:
                pinned.add(above)
                yield above, "pinned"
        yield path, "hidden" if hide else "read_only"


def _add_protection(view: FilesystemView, plan: BubblewrapPlan) -> None:
    for path, protection in find_protected_paths(view):
        inside = path_inside(view, path)
        if protection == "hidden":
            plan.add_arguments("--size", "4096", "--tmpfs", inside, "--remount-ro", inside)
        else:
            plan.bind(path, inside, read_only=protection == "read_only")


def _footplate_directories(view: FilesystemView) -> Iterator[tuple[Path, bool]]:
    """Yields Footplate's own directories and whether to hide them. Resolved like the tree, so that each has only one
    path.
    """
    code = {Path(sys.prefix), Path(sys.base_prefix), Path(__file__).parents[2], Path(sysconfig.get_path("purelib"))}
    for path in sorted({path.resolve() for path in code}):
        yield path, False
    for path in view.hidden:
        yield path.resolve(), True


def path_inside(view: FilesystemView, path: Path) -> str:
    return str(Path(view.root, path.relative_to(view.tree)))
