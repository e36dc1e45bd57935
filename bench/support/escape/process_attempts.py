"""Attempts to reach other processes, the user's privileges, and the worker itself."""

import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import psutil

from bench.support.escape.attempt import Attempt, leaks, reaches
from bench.support.escape.attempt_context import AttemptContext

_PATTERN: Final = Path("/proc/sys/kernel/core_pattern")
_DANGER: Final = "it would hit every process of the machine"


def _victim_is(*states: str) -> Callable[[AttemptContext], bool]:
    return lambda scene: scene.host.victim_state()["State"][0] in states


def _wake_victim(scene: AttemptContext) -> None:
    assert scene.host.victim is not None
    psutil.Process(scene.host.victim.pid).resume()


def _victim_harmed(scene: AttemptContext) -> bool:
    state = scene.host.victim_state()
    return state["State"][0] in "TtZX" or state["TracerPid"] != "0"


def _peak_above_zero(scene: AttemptContext) -> bool:
    return scene.peak > 0


def _score(scene: AttemptContext) -> str:
    assert scene.host.victim is not None
    return Path(f"/proc/{scene.host.victim.pid}/oom_score_adj").read_text().strip()


def _restore_score(scene: AttemptContext) -> None:
    assert scene.host.victim is not None
    Path(f"/proc/{scene.host.victim.pid}/oom_score_adj").write_text("0")


def _arm_crash_handler(scene: AttemptContext) -> None:
    """Installs a crash handler, as most machines have one."""
    handler = scene.host.path("handler")
    handler.write_text(f"#!/bin/sh\necho %P >> {scene.host.path('crashed')}\ncat >/dev/null\n")
    handler.chmod(0o755)
    scene.host.path("crashed").unlink(missing_ok=True)
    if os.geteuid() == 0:
        _PATTERN.write_text(f"|{handler}")


def _crash_handled(scene: AttemptContext) -> bool:
    time.sleep(0.5)
    return scene.host.path("crashed").exists()


def _restore_pattern(scene: AttemptContext) -> None:
    if _PATTERN.read_text().strip() != scene.host.core_pattern:
        _PATTERN.write_text(scene.host.core_pattern)


def _create_setuid_program(scene: AttemptContext) -> None:
    """Puts a setuid program and a file that only root may read into the tree, as a careless host would."""
    program, file = scene.tree / "as-root", scene.tree / "of-root"
    program.write_bytes(Path("/bin/cat").read_bytes())
    file.write_text(scene.host.token("of root"))
    program.chmod(0o4755)
    file.chmod(0o600)
    if os.geteuid() == 0:
        for path, mode in ((program, 0o4755), (file, 0o600)):
            os.chown(path, 0, 0)
            path.chmod(mode)


def _made_setuid(scene: AttemptContext) -> bool:
    status = (scene.tree / "made").stat() if (scene.tree / "made").exists() else None
    return status is not None and status.st_uid == 0 and bool(status.st_mode & (stat.S_ISUID | stat.S_ISGID))


ATTEMPTS: Final = (
    Attempt(
        name="print-the-environment", category="environment", tries="prints its environment variables.",
        shell="env; set", succeeded=leaks("worker variable"),
        uncontrolled="no backend passes the worker's variables on",
    ),
    Attempt(
        name="variables-of-others", category="environment", tries="reads the variables of every process that it sees.",
        shell="cat /proc/*/environ | tr '\\0' '\\n'", succeeded=leaks("variable"),
    ),
    Attempt(
        name="variables-of-the-first-process", category="environment",
        tries="reads the variables of process 1 and of its parent.",
        shell="cat /proc/1/environ /proc/$PPID/environ /proc/self/environ",
        succeeded=leaks("worker variable", "variable"),
        uncontrolled="process 1 of a machine need not have a secret",
    ),
    Attempt(
        name="arguments-of-others", category="/proc of others", tries="reads other processes' command lines.",
        shell="cat /proc/*/cmdline | tr '\\0' ' '", succeeded=leaks("argument"),
    ),
    Attempt(
        name="names-of-others", category="/proc of others", tries="lists other processes by name.",
        shell="cat /proc/[0-9]*/comm /proc/[0-9]*/stat",
        succeeded=lambda scene: scene.host.token("name")[:15].encode() in scene.output,
    ),
    Attempt(
        name="memory-of-another", category="/proc of others", tries="reads another process's memory through /proc.",
        python="""
fd = os.open("/proc/@{pid}/mem", os.O_RDONLY)
print(os.pread(fd, 16, @{memory}))
""",
        succeeded=leaks("memory"), root_only=True,
    ),
    Attempt(
        name="descriptor-of-another", category="/proc of others", tries="opens a file that another process holds open.",
        shell="cat /proc/@{pid}/fd/9 /proc/*/fd/9", succeeded=leaks("held"), root_only=True,
    ),
    Attempt(
        name="working-directory-of-another", category="/proc of others",
        tries="reads the working directory and root of another process.",
        shell="ls -l /proc/@{pid}/cwd /proc/@{pid}/exe /proc/@{pid}/root/; cat /proc/@{pid}/root@{secret}",
        succeeded=leaks("secret"), root_only=True,
    ),
    Attempt(
        name="offer-another-to-the-oom-killer", category="/proc of others",
        tries="has the kernel kill another process first when memory runs out.",
        shell="echo 777 > /proc/@{pid}/oom_score_adj", succeeded=lambda scene: _score(scene) == "777",
        after=_restore_score, root_only=True,
    ),
    Attempt(
        name="ptrace-attach", category="ptrace", tries="attaches to another process as a debugger.",
        python="libc.ptrace(16, @{pid}, None, None); time.sleep(0.3); os.kill(os.getpid(), 9)",
        watch=lambda scene: int(scene.host.victim_state()["TracerPid"]), succeeded=_peak_above_zero, seconds=5,
    ),
    Attempt(
        name="ptrace-stop", category="ptrace", tries="seizes and stops another process.",
        python="""
for pid in [@{pid}]:
    libc.ptrace(0x4206, pid, None, None); libc.ptrace(0x4207, pid, None, None)
time.sleep(0.5)
""",
        watch=lambda scene: int(_victim_harmed(scene)), succeeded=_peak_above_zero, after=_wake_victim, seconds=5,
    ),
    Attempt(
        name="process-vm-read", category="ptrace", tries="reads another process's memory by system call.",
        python="""
class Vec(ctypes.Structure): _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
space = ctypes.create_string_buffer(16)
here, there = Vec(ctypes.addressof(space), 16), Vec(@{memory}, 16)
one = ctypes.c_ulong(1)
# The sixth argument is on the stack: an int would leave the upper half of its place undefined.
libc.syscall(@{NR_process_vm_readv}, @{pid}, ctypes.byref(here), one, ctypes.byref(there), one, ctypes.c_ulong(0))
print(space.raw)
""",
        succeeded=leaks("memory"), root_only=True,
    ),
    Attempt(
        name="take-a-descriptor", category="ptrace", tries="takes an open file out of another process.",
        python="""
fd = libc.syscall(@{NR_pidfd_open}, @{pid}, 0)
got = libc.syscall(@{NR_pidfd_getfd}, fd, 9, 0)
if got >= 0: print(os.pread(got, 100, 0))
""",
        succeeded=leaks("held"), root_only=True,
    ),
    Attempt(
        name="read-a-key", category="keyrings", tries="reads a key from the keyring of the worker's user.",
        python="""
number = libc.syscall(@{NR_keyctl}, 10, -4, b"user", b"@{key}", 0)
if number < 0: number = libc.syscall(@{NR_request_key}, b"user", b"@{key}", None, -4)
space = ctypes.create_string_buffer(64)
libc.syscall(@{NR_keyctl}, 11, number, space, ctypes.c_size_t(64))
print(number, space.raw)
""",
        succeeded=leaks("key"),
    ),
    Attempt(
        name="plant-a-key", category="keyrings", tries="puts a key into that keyring.",
        python='libc.syscall(@{NR_add_key}, b"user", b"planted-@{token}", b"x", ctypes.c_size_t(1), -4)',
        succeeded=lambda scene: scene.host.has_key(f"planted-{scene.host.fields['token']}"),
    ),
    Attempt(
        name="list-keys", category="keyrings", tries="lists the keys of the machine.",
        shell="cat /proc/keys /proc/key-users",
        succeeded=lambda scene: scene.host.fields["key"].encode() in scene.output,
    ),
    Attempt(
        name="run-a-setuid-program", category="setuid", tries="runs a program that acts as root.",
        before=_create_setuid_program, shell="./as-root of-root", succeeded=leaks("of root"),
        root_only=True, pointless_as_owner=True,
    ),
    Attempt(
        name="become-root", category="setuid", tries="becomes root by system call, and reads a file of root.",
        before=_create_setuid_program, root_only=True, pointless_as_owner=True,
        python="""
for become in (lambda: os.setuid(0), lambda: os.setresuid(0, 0, 0), lambda: os.setgid(0), lambda: os.setgroups([0])):
    try: become()
    except OSError as error: print(error)
print(open("of-root").read())
""",
        succeeded=leaks("of root"),
    ),
    Attempt(
        name="make-a-setuid-program", category="setuid", tries="creates a program on the host that acts as root.",
        shell="cp /bin/cat made || cp $(command -v bash) made; chown 0:0 made; chmod 4755 made; chmod u+s made",
        succeeded=_made_setuid, root_only=True,
    ),
    Attempt(
        name="use-sudo", category="setuid", tries="asks the system's own programs to act as root.",
        before=_create_setuid_program,
        shell="sudo -n cat of-root; su -c 'cat of-root' </dev/null; pkexec cat of-root </dev/null",
        pointless_as_owner=True,
        succeeded=leaks("of root"), uncontrolled="a host may have none of them, or ask for a password",
    ),
    Attempt(
        name="gain-root-in-a-namespace", category="setuid", tries="makes a user namespace in which it is root.",
        before=_create_setuid_program, shell="unshare -Ur cat of-root; unshare -r --map-users=0,0,1 cat of-root",
        succeeded=leaks("of root"), root_only=True, pointless_as_owner=True,
    ),
    Attempt(
        name="write-the-core-pattern", category="core patterns",
        tries="sets the program that the kernel runs as root at the next crash.",
        shell="echo core.%p.@{token} > /proc/sys/kernel/core_pattern",
        succeeded=lambda scene: scene.host.fields["token"] in _PATTERN.read_text(),
        after=_restore_pattern, root_only=True,
    ),
    Attempt(
        name="crash", category="core patterns", tries="crashes, to feed data to the machine's crash handler.",
        before=_arm_crash_handler, shell="sh -c 'kill -SEGV $$'; bash -c 'kill -ABRT $$'; true",
        succeeded=_crash_handled, after=_restore_pattern, root_only=True,
    ),
    Attempt(
        name="crash-without-a-limit", category="core patterns",
        tries="crashes after it set its own limit so that a handler runs.",
        before=_arm_crash_handler, shell="ulimit -c 0; ulimit -S -c 0; sh -c 'kill -SEGV $$'; true",
        succeeded=_crash_handled, after=_restore_pattern, root_only=True,
    ),
    Attempt(
        name="write-kernel-settings", category="core patterns", tries="changes settings of the kernel.",
        shell="find /proc/sys/kernel /proc/sys/vm /proc/sys/fs -name domainname -prune -o -type f -writable -print "
        "| grep -v -e mqueue -e '/\\(msg\\|sem\\|shm\\|auto_msg\\|ns_last\\|pid_max\\)'",
        succeeded=lambda scene: b"/proc/sys/" in scene.output, root_only=True,
    ),
    Attempt(
        name="signal-the-worker", category="signals to the worker", tries="signals the worker by its pid.",
        shell="kill -USR1 @{worker}; sleep 0.2", succeeded=reaches("worker"),
    ),
    Attempt(
        name="signal-everybody", category="signals to the worker", tries="signals all processes.",
        shell="trap '' USR1; kill -USR1 -1; sleep 0.2", succeeded=reaches("worker"), uncontrolled=_DANGER,
    ),
    Attempt(
        name="signal-groups", category="signals to the worker", tries="signals its own group, session and parents.",
        python="""
import _signal
_signal.signal(_signal.SIGUSR1, _signal.SIG_IGN)
for pid in (0, os.getppid(), -os.getpgid(0), -os.getsid(0), 1):
    try: os.kill(pid, 10)
    except OSError: pass
time.sleep(0.2)
""",
        succeeded=reaches("worker"), uncontrolled="its parent is the guardian, which would die",
    ),
    Attempt(
        name="signal-by-descriptor", category="signals to the worker", tries="signals the worker through a pidfd.",
        python="""
fd = libc.syscall(@{NR_pidfd_open}, @{worker}, 0)
libc.syscall(@{NR_pidfd_send_signal}, fd, 10, None, 0)
time.sleep(0.2)
""",
        succeeded=reaches("worker"),
    ),
    Attempt(
        name="signal-by-pipe", category="signals to the worker",
        tries="has the kernel signal the worker when their shared pipe is read.",
        python="""
fcntl.fcntl(1, fcntl.F_SETOWN, @{worker}); fcntl.fcntl(1, 10, 10)
fcntl.fcntl(1, fcntl.F_SETFL, fcntl.fcntl(1, fcntl.F_GETFL) | os.O_ASYNC)
for _ in range(50): print("x" * 100, flush=True); time.sleep(0.01)
""",
        succeeded=reaches("worker"),
    ),
    Attempt(
        name="stop-a-process", category="signals to the worker", tries="stops another process of the host.",
        shell="kill -STOP @{pid}; sleep 0.2", succeeded=_victim_is("T", "t"), after=_wake_victim,
    ),
)  # fmt: skip
