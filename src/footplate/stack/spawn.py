"""How a child is started so that it never outlives its launcher, and PostgreSQL so that it is not root.

`setpriv` asks the kernel to signal the child when the *thread* that started it ends, so children are started on the
event loop's own thread. Between fork and that request the launcher may already have died: a shell compares its
parent with the one it was started by before it becomes the program.

PostgreSQL refuses to run as root. As root it is given another user, and the one capability that lets this user reach
the programs and the data below directories that only root may enter (`/root`, a private temporary directory). That
leaves the permissions of every directory as they are, and needs no user namespace. `no_setuid_fixup` makes the
capability count for access(2) as well, by which PostgreSQL looks for its own program.
"""

import os
import pwd
import shutil
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_USERS: Final = ("postgres", "nobody")
_SAME_PARENT: Final = '[ "$PPID" = "$0" ] || exit 125; exec "$@"'


def bound_to_launcher(
    argv: Sequence[str], *, death_signal: signal.Signals, user: pwd.struct_passwd | None = None
) -> list[str]:
    """The command line that runs `argv` and ends it with `death_signal` when this process dies."""
    setpriv = shutil.which("setpriv") or "/usr/bin/setpriv"
    name = death_signal.name.removeprefix("SIG")
    as_user = [] if user is None else _become(user)
    return [setpriv, "--pdeathsig", name, *as_user, "--", "/bin/sh", "-c", _SAME_PARENT, str(os.getpid()), *argv]


def unprivileged_user() -> pwd.struct_passwd | None:
    """Whom a server that refuses root runs as; None when this process is not root."""
    if os.geteuid() != 0:
        return None
    for name in _USERS:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise RuntimeError(f"This machine has none of the users {', '.join(_USERS)}.")


def give(path: Path, user: pwd.struct_passwd | None) -> None:
    """Make `user` the owner of `path` and all below, if it is not yet."""
    if user is None or path.stat().st_uid == user.pw_uid:
        return
    for folder, _, files in os.walk(path):
        for name in (folder, *(os.path.join(folder, file) for file in files)):  # noqa: PTH118 - os.walk gives strings
            os.lchown(name, user.pw_uid, user.pw_gid)


def _become(user: pwd.struct_passwd) -> list[str]:
    return [
        *("--securebits", "+no_setuid_fixup"),
        f"--reuid={user.pw_uid}",
        f"--regid={user.pw_gid}",
        "--clear-groups",
        "--inh-caps=-all,+dac_override",
        "--ambient-caps=-all,+dac_override",
    ]
