"""Attempts to use devices and mounts, which the kernel reserves for root."""

import contextlib
import os
import tempfile
from pathlib import Path
from typing import Final

from bench.support.escape.attempt import Attempt, leaks
from bench.support.escape.attempt_context import AttemptContext

_SUPERBLOCK: Final = 1024


def _read_superblock() -> bytes:
    """Returns unique bytes of the host's disk, in hexadecimal; empty if the host itself cannot read them."""
    device = Path(tempfile.gettempdir()).stat().st_dev
    for path in Path("/dev").iterdir():
        with contextlib.suppress(OSError):
            if path.is_block_device() and path.stat().st_rdev == device:
                with path.open("rb") as disk:
                    disk.seek(_SUPERBLOCK + 0x68)
                    return disk.read(16).hex().encode()
    return b""


def _read_the_disk(scene: AttemptContext) -> bool:
    known = _read_superblock()
    return known in scene.output if known else b"disk: " in scene.output


def _kernel_log(scene: AttemptContext) -> bool:
    log = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    try:
        with contextlib.suppress(BlockingIOError):
            while True:
                with contextlib.suppress(BrokenPipeError):
                    if scene.host.fields["token"].encode() in os.read(log, 8192):
                        return True
    finally:
        os.close(log)
    return False


def _count_mounts(scene: AttemptContext) -> int:
    """Counts its processes that have the mount it tried to make."""
    name = f" footplate-{scene.host.fields['token']} "
    return sum(name in Path(f"/proc/{process.pid}/mountinfo").read_text() for process in scene.list_processes())


_READ_DISK: Final = """
def look(path):
    try: print("disk: " + os.pread(os.open(path, os.O_RDONLY), 16, 1024 + 0x68).hex())
    except OSError as error: print(path, error)
"""

ATTEMPTS: Final = (
    Attempt(
        name="make-a-disk-node", category="device nodes", tries="makes a node for the host's disk and reads the disk.",
        python=_READ_DISK + """
try: os.mknod("disk", 0o60600, os.makedev(@{major}, @{minor}))
except OSError as error: print(error)
look("disk")
""",
        succeeded=_read_the_disk, possible=lambda: bool(_read_superblock()), root_only=True,
    ),
    Attempt(
        name="open-a-disk-node", category="device nodes", tries="opens every device that it finds.",
        python=_READ_DISK + """
for directory, _, names in os.walk("/dev"):
    for name in names:
        path = os.path.join(directory, name)
        if (os.lstat(path).st_mode & 0o170000) == 0o060000: look(path)
""",
        succeeded=_read_the_disk, possible=lambda: bool(_read_superblock()), root_only=True,
    ),
    Attempt(
        name="make-a-memory-node", category="device nodes", tries="makes nodes for the kernel's memory and log.",
        shell="mknod log c 1 11; echo footplate @{token} > log", succeeded=_kernel_log, root_only=True,
    ),
    Attempt(
        name="write-the-kernel-log", category="device nodes", tries="writes into the kernel's log.",
        shell="echo footplate @{token} > /dev/kmsg", succeeded=_kernel_log, root_only=True,
    ),
    Attempt(
        name="write-a-terminal", category="device nodes", tries="writes to the terminal of a user.",
        shell="echo @{token} > @{terminal}",
        succeeded=lambda scene: scene.host.fields["token"].encode() in scene.host.read_terminal(),
    ),
    Attempt(
        name="bind-a-host-directory", category="mount", tries="mounts a directory of the host into its tree.",
        shell="mkdir -p m; mount --bind @{directory} m; cat m/secret", succeeded=leaks("secret"),
        uncontrolled="without a boundary it already has every directory",
    ),
    Attempt(
        name="mount-the-disk", category="mount", tries="mounts the host's disk.",
        python=_READ_DISK + """
os.makedirs("m", exist_ok=True)
try: os.mknod("disk", 0o60600, os.makedev(@{major}, @{minor}))
except OSError as error: print(error)
for kind in (b"ext4", b"xfs", b"btrfs"): libc.mount(b"disk", b"m", kind, ctypes.c_ulong(1), None)
try: print(open("m@{secret}").read())
except OSError as error: print(error)
libc.umount2(b"m", 2)
""",
        succeeded=leaks("secret"), uncontrolled="the machine's own disk is not mounted a second time for a test",
    ),
    Attempt(
        name="mount-in-a-namespace", category="mount", tries="mounts a filesystem in its own user namespace.",
        shell="unshare -Urm sh -c 'mkdir -p m; mount -t tmpfs footplate-@{token} m && sleep 1'",
        watch=_count_mounts, succeeded=lambda scene: scene.peak > 0,
        root_only=True,
    ),
    Attempt(
        name="make-it-writable", category="mount", tries="mounts /usr again, writable, and writes there.",
        shell="mount -o remount,rw /usr; mount -o remount,bind,rw /usr; echo x > /usr/local/footplate-@{token}",
        succeeded=lambda scene: Path(f"/usr/local/footplate-{scene.host.fields['token']}").exists(),
        after=lambda scene: Path(f"/usr/local/footplate-{scene.host.fields['token']}").unlink(missing_ok=True),
        root_only=True,
    ),
    Attempt(
        name="take-mounts-away", category="mount", tries="unmounts the mounts that hide the host.",
        shell="umount -l /tmp; umount -l /proc; umount -l /workspace; umount -l /; cat @{secret} /oldroot@{secret}",
        succeeded=leaks("secret"), uncontrolled="it would unmount the machine's own filesystems",
    ),
    Attempt(
        name="clone-a-mount", category="mount",
        tries="clones a mount with newer system calls, which filters may not cover.",
        python="""
fd = libc.syscall(@{NR_open_tree}, -100, b"/", 1 | 0x8000)
print(fd, ctypes.get_errno())
try: print(os.read(os.open("@{secret}".lstrip("/"), os.O_RDONLY, dir_fd=fd), 100))
except OSError as error: print(error)
""",
        succeeded=leaks("secret"), root_only=True,
    ),
    Attempt(
        name="open-by-handle", category="mount", tries="opens a file of the same disk by number instead of path.",
        python="""
handle = ctypes.create_string_buffer(bytes.fromhex("@{handle}"))
for place in (".", "/", "/etc/hostname", "/etc/resolv.conf", "/home/agent", "/mnt/session/outputs"):
    try: start = os.open(place, os.O_RDONLY)
    except OSError: continue
    fd = libc.open_by_handle_at(start, handle, 0)
    if fd >= 0: print(os.read(fd, 100))
    else: print(place, ctypes.get_errno())
""",
        succeeded=leaks("secret"), root_only=True,
    ),
    Attempt(
        name="rename-the-machine", category="mount", tries="changes the machine's name.",
        python='print(libc.sethostname(b"taken", 5))',
        succeeded=lambda _: os.uname().nodename == "taken", uncontrolled="it would rename the machine",
    ),
)  # fmt: skip
