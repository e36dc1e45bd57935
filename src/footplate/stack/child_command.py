"""Builds command lines for child processes that end when their launcher ends.

PostgreSQL refuses to run as root. If the launcher is root, the command line for PostgreSQL therefore switches to
another user.
"""

import os
import pwd
import shutil
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_USERS: Final = ("postgres", "nobody")
_CHECK_PARENT_SCRIPT: Final = '[ "$PPID" = "$0" ] || exit 125; exec "$@"'


def command_bound_to_launcher(
    argv: Sequence[str], *, death_signal: signal.Signals, user: pwd.struct_passwd | None = None
) -> list[str]:
    """Returns the command line that runs `argv` and ends it with `death_signal` when this process dies.

    `setpriv` asks the kernel to signal the child when the *thread* that started it ends. Children are therefore started
    on the event loop's thread. The launcher may die between the fork and that request. A shell therefore checks that
    its parent is still the launcher before it executes the program.
    """
    setpriv = shutil.which("setpriv") or "/usr/bin/setpriv"
    name = death_signal.name.removeprefix("SIG")
    as_user = [] if user is None else _setpriv_user_options(user)
    return [
        setpriv,
        "--pdeathsig",
        name,
        *as_user,
        "--",
        "/bin/sh",
        "-c",
        _CHECK_PARENT_SCRIPT,
        str(os.getpid()),
        *argv,
    ]


def unprivileged_user() -> pwd.struct_passwd | None:
    """Returns the user for a server that refuses to run as root, or None if this process is not root."""
    if os.geteuid() != 0:
        return None
    for name in _USERS:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    users = ", ".join(_USERS)
    raise RuntimeError(f"PostgreSQL cannot run as root. Run as another user, or create one of these users: {users}.")


def change_owner(path: Path, user: pwd.struct_passwd | None) -> None:
    """Makes `user` the owner of `path` and everything below it, unless it already is."""
    if user is None or path.stat().st_uid == user.pw_uid:
        return
    for folder, _, files in os.walk(path):
        for name in (folder, *(os.path.join(folder, file) for file in files)):  # noqa: PTH118 - os.walk gives strings
            os.lchown(name, user.pw_uid, user.pw_gid)


def _setpriv_user_options(user: pwd.struct_passwd) -> list[str]:
    """Returns options that switch to `user` but keep the capability `CAP_DAC_OVERRIDE`.

    With it, the user can access programs and data below directories that only root may enter, such as `/root`. No
    permissions have to be changed, and no user namespace is needed. `no_setuid_fixup` makes the capability apply to
    access(2) as well, which PostgreSQL uses to find its own executable.
    """
    return [
        *("--securebits", "+no_setuid_fixup"),
        f"--reuid={user.pw_uid}",
        f"--regid={user.pw_gid}",
        "--clear-groups",
        "--inh-caps=-all,+dac_override",
        "--ambient-caps=-all,+dac_override",
    ]
