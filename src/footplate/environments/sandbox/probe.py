"""Tests whether the `sandbox` backend works on this machine, by starting a bubblewrap sandbox."""

import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from footplate.domain.errors import FootplateError, Permanent
from footplate.environments.isolation.cgroups import CgroupFactory, NoCgroups
from footplate.environments.isolation.filesystem_view import STATE_MOUNTS, FilesystemView
from footplate.environments.reaper.expired_lease_reaper import new_trial_name
from footplate.environments.sandbox import seccomp
from footplate.environments.sandbox.environment import SandboxEnvironment, SandboxHost
from footplate.lease_clock import lease_clock

INSTALL_HELP: Final = "Install bubblewrap (Debian and Ubuntu: apt install bubblewrap; Fedora: dnf install bubblewrap)."
UNSANDBOXED_HELP: Final = (
    "To run agents without isolation instead, set FOOTPLATE_ENVIRONMENT=unsandboxed. See docs/environments.md."
)
NAMESPACES_HELP: Final = (
    "Allow unprivileged user namespaces with sysctl: kernel.unprivileged_userns_clone=1, user.max_user_namespaces "
    "above 0, and on Ubuntu kernel.apparmor_restrict_unprivileged_userns=0. If the worker runs in a container or "
    "as root, see docs/environments.md for further requirements."
)
CGROUPS_HELP: Final = (
    "Give the worker write access to its cgroup: run it as root, or as a systemd service with Delegate=yes "
    "and DelegateSubgroup=worker"
)
_LEASE_SECONDS: Final = 30.0


class NoSandbox(Permanent):
    """The operator requires a sandbox, and this machine does not support one."""

    code = "no_sandbox"


@dataclass(frozen=True, slots=True)
class SandboxProbe:
    host: SandboxHost
    cgroups_problem: str
    """Why limits apply only per process; empty if they apply to the sandbox as a whole."""


async def probe_sandbox(uid: int, *, path: str | None = None) -> SandboxProbe:
    """Starts a sandbox and runs a command in it. `uid` is the user for the commands of a root worker. Raises
    `NoSandbox`.
    """
    if sys.platform != "linux":
        raise NoSandbox("The sandbox requires Linux.", help_text=f"Run workers on Linux. {UNSANDBOXED_HELP}")
    program = shutil.which("bwrap", path=path)
    if program is None:
        raise NoSandbox(
            "The sandbox requires bubblewrap, but `bwrap` is not on the PATH.",
            help_text=f"{INSTALL_HELP} {UNSANDBOXED_HELP}",
        )
    _check_filters()
    try:
        cgroups, cgroups_problem = CgroupFactory.detect(), ""
    except (NoCgroups, OSError) as error:
        cgroups, cgroups_problem = None, str(error)
    host = SandboxHost(bubblewrap_path=program, cgroups=cgroups)
    await _run_in_trial_sandbox(host, uid)
    return SandboxProbe(host, cgroups_problem)


def _check_filters() -> None:
    try:
        seccomp.build_filters()
    except (ImportError, RuntimeError, OSError) as error:
        message = f"The sandbox requires libseccomp, which cannot be loaded: {error}."
        raise NoSandbox(
            message, help_text=f"Install it (Debian and Ubuntu: apt install libseccomp2). {UNSANDBOXED_HELP}"
        ) from error


async def _run_in_trial_sandbox(host: SandboxHost, uid: int) -> None:
    user = (uid, uid) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
    with tempfile.TemporaryDirectory(prefix=f"{new_trial_name()}-") as directory:
        tree, state = Path(directory, "tree"), Path(directory, "state")
        for path in (tree, state, *(state / name for name in STATE_MOUNTS)):
            path.mkdir()
        environment = SandboxEnvironment(
            FilesystemView(tree=tree, state=state), host, user=user, deadline=lease_clock() + _LEASE_SECONDS
        )
        try:
            result = await environment.run(["true"], timeout=_LEASE_SECONDS)
        except FootplateError as error:
            message = f"No sandbox can be started on this machine. {error.message}"
            raise NoSandbox(message, help_text=f"{NAMESPACES_HELP} {UNSANDBOXED_HELP}") from error
        finally:
            await environment.aclose()
    if result.exit_code != 0:
        error_output = result.stderr.decode(errors="replace").strip()
        raise NoSandbox(
            f"The sandbox starts, but a command in it failed: {error_output}",
            help_text=f"{NAMESPACES_HELP} {UNSANDBOXED_HELP}",
        )
