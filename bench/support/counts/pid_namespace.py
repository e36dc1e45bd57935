"""Runs `footplate` in its own pid namespace, where the kernel numbers processes and threads one by one.

    python -m bench.support.counts.pid_namespace worker

It needs root.
"""

import asyncio
import ctypes
import os
import signal
import sys
from typing import Final

_CLONE_NEWNS: Final = 0x00020000
_CLONE_NEWPID: Final = 0x20000000
_MS_PRIVATE_BELOW: Final = 0x44000
_PR_SET_PDEATHSIG: Final = 1

_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    _check(_libc.unshare(_CLONE_NEWNS | _CLONE_NEWPID))
    child = os.fork()
    if child == 0:
        _check(_libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))
        _check(_libc.mount(b"none", b"/", None, _MS_PRIVATE_BELOW, None))
        _check(_libc.mount(b"proc", b"/proc", b"proc", 0, None))
        os.execv(sys.executable, [sys.executable, "-m", "footplate", *sys.argv[1:]])
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGTERM))
    _, status = os.waitpid(child, 0)
    sys.exit(os.waitstatus_to_exitcode(status) & 0xFF)


async def next_pid(pid: int) -> int:
    """Starts a short process in the pid namespace of `pid`'s children and returns its pid. Each call uses up one."""
    namespace = f"--pid=/proc/{pid}/ns/pid_for_children"
    process = await asyncio.create_subprocess_exec(
        *("nsenter", namespace, "sh", "-c", "echo $$"), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    return int(output)


def _check(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


if __name__ == "__main__":
    main()
