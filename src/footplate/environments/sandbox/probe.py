"""Tests whether the sandbox works on this machine, by starting one."""

import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from footplate.domain.errors import FootplateError, Permanent
from footplate.environments.guardian import clock
from footplate.environments.reaper.reaping import trial_name
from footplate.environments.sandbox import seccomp
from footplate.environments.sandbox.cgroups import Cgroups, NoCgroups
from footplate.environments.sandbox.environment import Host, SandboxEnvironment
from footplate.environments.sandbox.view import STATE, View

INSTALL: Final = "Install bubblewrap (Debian and Ubuntu: apt install bubblewrap; Fedora: dnf install bubblewrap)"
CHOOSE: Final = (
    "or run agents without isolation by setting FOOTPLATE_ENVIRONMENT=unsandboxed. See docs/environments.md."
)
ALLOW: Final = (
    "Allow unprivileged user namespaces (sysctl kernel.unprivileged_userns_clone=1, user.max_user_namespaces "
    "above 0, and on Ubuntu kernel.apparmor_restrict_unprivileged_userns=0); in a container, /proc must not be masked "
    "(docker run --security-opt seccomp=unconfined --security-opt systempaths=unconfined), and a worker that is root "
    "needs CAP_SYS_ADMIN or must run as another user"
)
DELEGATE: Final = (
    "Let the worker write its own cgroup: run it as root, or as a systemd service with Delegate=yes "
    "and DelegateSubgroup=worker"
)
_LEASE: Final = 30.0


class NoSandbox(Permanent):
    """The operator requires a sandbox, and this machine does not support one."""

    code = "no_sandbox"


@dataclass(frozen=True, slots=True)
class Found:
    host: Host
    without_cgroups: str
    """Why limits apply only per process; empty if they apply to the sandbox as a whole."""


async def find(uid: int, *, path: str | None = None) -> Found:
    """Starts a sandbox and runs a command in it. `uid` is the user for the commands of a root worker. Raises
    `NoSandbox`.
    """
    if sys.platform != "linux":
        raise NoSandbox("The sandbox requires Linux.", help_text=f"Run workers on Linux, {CHOOSE}")
    program = shutil.which("bwrap", path=path)
    if program is None:
        raise NoSandbox(
            "The sandbox requires bubblewrap, but `bwrap` is not on the PATH.", help_text=f"{INSTALL}, {CHOOSE}"
        )
    _try_filters()
    try:
        cgroups, missing = Cgroups.find(), ""
    except (NoCgroups, OSError) as error:
        cgroups, missing = None, str(error)
    host = Host(program=program, cgroups=cgroups)
    await _try(host, uid)
    return Found(host, missing)


def _try_filters() -> None:
    try:
        seccomp.programs()
    except (ImportError, RuntimeError, OSError) as error:
        what = f"The sandbox requires libseccomp, which cannot be loaded: {error}."
        raise NoSandbox(what, help_text=f"Install it (Debian and Ubuntu: apt install libseccomp2), {CHOOSE}") from error


async def _try(host: Host, uid: int) -> None:
    user = (uid, uid) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
    with tempfile.TemporaryDirectory(prefix=f"{trial_name()}-") as directory:
        tree, state = Path(directory, "tree"), Path(directory, "state")
        for place in (tree, state, *(state / name for name in STATE)):
            place.mkdir()
        environment = SandboxEnvironment(View(tree=tree, state=state), host, user=user, deadline=clock() + _LEASE)
        try:
            result = await environment.run(["true"], timeout=_LEASE)
        except FootplateError as error:
            what = f"No sandbox can be started on this machine. {error.message}"
            raise NoSandbox(what, help_text=f"{ALLOW}, {CHOOSE}") from error
        finally:
            await environment.aclose()
    if result.exit_code != 0:
        said = result.stderr.decode(errors="replace").strip()
        raise NoSandbox(f"A sandbox starts, but no command runs in it: {said}", help_text=f"{ALLOW}, {CHOOSE}")
