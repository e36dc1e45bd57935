"""Attempts to exhaust shared resources of a machine: processes, memory, disk and descriptors."""

from pathlib import Path
from typing import Final

import psutil

from bench.support.escape.attempt import Attempt, exceeds
from bench.support.escape.attempt_context import LIMITS, MIB, AttemptContext

_SLACK: Final = 32
_DISK: Final = LIMITS.disk + 256 * MIB
"""What may be written before the next check, by measurement. A directory that a user names has no limit."""
_HOLD: Final = "time.sleep(2)"


def _threads(scene: AttemptContext) -> int:
    total = 0
    for process in scene.list_processes():
        try:
            total += process.num_threads()
        except psutil.NoSuchProcess:
            continue
    return total


def _resident(scene: AttemptContext) -> int:
    total = 0
    for process in scene.list_processes():
        try:
            lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss_Anon:"))
    return total


def _shared(scene: AttemptContext) -> int:
    """Returns its bytes in shared memory, seen through one of its processes."""
    for process in scene.list_processes():
        try:
            return Path(f"/proc/{process.pid}/root/dev/shm/fill-{scene.mark}").stat().st_blocks * 512
        except OSError:
            continue
    return 0


def _descriptors(scene: AttemptContext) -> int:
    highest = 0
    for process in scene.list_processes():
        try:
            highest = max(highest, sum(1 for _ in Path(f"/proc/{process.pid}/fd").iterdir()))
        except OSError:
            continue
    return highest


def _open_files(_: AttemptContext) -> int:
    return int(Path("/proc/sys/fs/file-nr").read_text().split()[0])


def _own_limit(_: AttemptContext) -> int:
    return LIMITS.process_limits(has_cgroup=True)["RLIMIT_NOFILE"]


def _queues(_: AttemptContext) -> int:
    return int(Path("/proc/sys/fs/aio-nr").read_text())


def _socket_memory(_: AttemptContext) -> int:
    """Returns the TCP memory of the whole machine, in pages."""
    line = next(line for line in Path("/proc/net/sockstat").read_text().splitlines() if line.startswith("TCP"))
    return int(line.split()[-1])


def _stored_too_much(scene: AttemptContext) -> bool:
    return scene.stored_bytes() > _DISK


def _remove_shared(scene: AttemptContext) -> None:
    Path(f"/dev/shm/fill-{scene.mark}").unlink(missing_ok=True)


ATTEMPTS: Final = (
    Attempt(
        name="fork-bomb", category="fork bombs", tries="starts more processes than it may have.",
        python="""
for _ in range(600):
    try:
        if os.fork() == 0: time.sleep(3); os._exit(0)
    except OSError: time.sleep(0.005)
time.sleep(1)
""",
        watch=lambda scene: len(scene.list_processes()), succeeded=exceeds(lambda _: LIMITS.pids + _SLACK), seconds=10,
    ),
    Attempt(
        name="fork-bomb-that-breeds", category="fork bombs", tries="has every process start further processes.",
        python="""
end = time.monotonic() + 3
left = 9
while time.monotonic() < end and left:
    try:
        if os.fork() == 0: left -= 1
        else: left -= 1
    except OSError: time.sleep(0.01)
time.sleep(max(0, end - time.monotonic()))
""",
        watch=lambda scene: len(scene.list_processes()), succeeded=exceeds(lambda _: LIMITS.pids + _SLACK), seconds=10,
    ),
    Attempt(
        name="thread-bomb", category="fork bombs", tries="starts more threads than it may have.",
        python="""
import _thread
for _ in range(600):
    try: _thread.start_new_thread(time.sleep, (3,))
    except RuntimeError: time.sleep(0.005)
time.sleep(2)
""",
        watch=_threads, succeeded=exceeds(lambda _: LIMITS.pids + _SLACK), seconds=10,
    ),
    Attempt(
        name="outlive-the-turn", category="fork bombs",
        tries="starts processes that outlive the turn and ignore every signal.",
        shell="trap '' TERM INT; (setsid bash -c 'trap \"\" TERM INT; (sleep 300 &)' &); nohup sleep 300 >/dev/null &",
        succeeded=lambda scene: bool(scene.survivors), uncontrolled="the guardian ends them in every backend",
    ),
    Attempt(
        name="fill-memory", category="memory fill", tries="takes more memory than it may have.",
        python=f"space = bytearray({900 * MIB})\nfor at in range(0, len(space), 4096): space[at] = 1\n{_HOLD}",
        watch=_resident, succeeded=exceeds(lambda _: LIMITS.memory + 32 * MIB),
    ),
    Attempt(
        name="fill-memory-by-many", category="memory fill",
        tries="takes more memory than it may have with many processes.",
        python=f"""
for _ in range(16):
    if os.fork() == 0:
        space = bytearray({80 * MIB})
        for at in range(0, len(space), 4096): space[at] = 1
        time.sleep(4); os._exit(0)
time.sleep(4)
""",
        watch=_resident, succeeded=exceeds(lambda _: LIMITS.memory + 256 * MIB),
    ),
    Attempt(
        name="fill-shared-memory", category="memory fill", tries="takes more memory than it may have in shared memory.",
        python=f"""
fd = os.open("/dev/shm/fill-" + os.environ["FOOTPLATE_ESCAPE"], os.O_CREAT | os.O_WRONLY)
for _ in range(900): os.write(fd, bytes({MIB}))
{_HOLD}
""",
        watch=_shared, succeeded=exceeds(lambda _: LIMITS.memory + 32 * MIB), after=_remove_shared,
    ),
    Attempt(
        name="fill-socket-memory", category="memory fill",
        tries="fills the buffers of connections to itself, which the kernel counts for the whole machine.",
        python="""
listener = socket.socket(2, 1); listener.bind(("127.0.0.1", 0)); listener.listen(500)
lines = []
for _ in range(150):
    line = socket.socket(2, 1); line.setsockopt(1, 7, 4 << 20); line.connect(listener.getsockname())
    line.settimeout(0.0); lines.append(line); lines.append(listener._accept())
    for _ in range(64):
        try: line.send(bytes(1 << 16))
        except OSError: break
time.sleep(2)
""",
        watch=_socket_memory, succeeded=exceeds(lambda _: 200 * MIB // 4096), seconds=20,
    ),
    Attempt(
        name="fill-the-disk", category="disk fill", tries="writes more than it may keep.",
        shell="for n in $(seq 1 80); do head -c 12M /dev/zero > f$n; sleep 0.1; done",
        succeeded=_stored_too_much, pointless_as_owner=True, seconds=40,
    ),
    Attempt(
        name="fill-the-disk-behind-the-back", category="disk fill",
        tries="continues to write after its command has returned.",
        shell="(for n in $(seq 1 60); do head -c 20M /dev/zero > f$n; sleep 0.1; done) >/dev/null 2>&1 & disown",
        succeeded=_stored_too_much, pointless_as_owner=True, seconds=20,
    ),
    Attempt(
        name="reserve-the-disk", category="disk fill", tries="has the disk reserve space without writing.",
        python=f"""
fd = os.open("reserved", os.O_CREAT | os.O_RDWR)
for step in range(8): libc.fallocate(fd, 0, ctypes.c_long(step * {50 * MIB}), ctypes.c_long({50 * MIB}))
time.sleep(3)
""",
        succeeded=_stored_too_much, pointless_as_owner=True, seconds=10,
    ),
    Attempt(
        name="take-all-inodes", category="disk fill", tries="creates empty files until the disk has no more inodes.",
        python="""
os.makedirs("many", exist_ok=True)
for number in range(120000):
    os.close(os.open(f"many/{number}", os.O_CREAT | os.O_WRONLY))
    if number % 600 == 0: time.sleep(0.05)
""",
        succeeded=lambda scene: scene.count_files() > 90_000, pointless_as_owner=True, seconds=120,
    ),
    Attempt(
        name="grow-when-full", category="disk fill",
        tries="continues to write, turn after turn, after it was stopped for that.",
        shell="head -c 60M /dev/zero > a; head -c 60M /dev/zero > b; head -c 60M /dev/zero > c; sleep 5; "
        "for n in $(seq 1 30); do head -c 12M /dev/zero > g$n; sleep 0.1; done",
        succeeded=_stored_too_much, pointless_as_owner=True, seconds=30,
    ),
    Attempt(
        name="open-files-of-a-process", category="fd exhaustion", tries="opens more files than a process may.",
        python="""
import resource
try: resource.setrlimit(7, (resource.getrlimit(7)[1],) * 2)
except (OSError, ValueError): pass
held = []
try:
    while len(held) < 200000: held.append(os.open("/dev/null", os.O_RDONLY))
except OSError as error: print(len(held), error)
time.sleep(1)
""",
        watch=_descriptors, succeeded=exceeds(_own_limit),
    ),
    Attempt(
        name="open-files-of-the-machine", category="fd exhaustion",
        tries="opens as many files as it can in as many processes as it can.",
        python="""
for _ in range(250):
    try:
        if os.fork() == 0:
            try:
                while True: os.open("/dev/null", os.O_RDONLY)
            except OSError: time.sleep(4); os._exit(0)
    except OSError: time.sleep(0.01)
time.sleep(3)
""",
        watch=_open_files, succeeded=exceeds(lambda _: int(Path("/proc/sys/fs/file-max").read_text()) // 2),
        uncontrolled="it would take the machine's open files",
    ),
    Attempt(
        name="descriptors-on-their-way", category="fd exhaustion",
        tries="sends descriptors that are never received, which the kernel counts for the whole user.",
        python="""
fds = os.open("/dev/null", os.O_RDONLY).to_bytes(4, sys.byteorder) * 200
held, sent = [], 0
for _ in range(400):
    try: one, other = socket.socketpair()
    except OSError: break
    one.settimeout(0.0)
    try:
        while True:
            one.sendmsg([b"x"], [(1, 1, fds)]); sent += 200
            if sent > 60000: break
    except OSError as error: print(error, sent)
    held.append((one, other))
time.sleep(2)
""",
        watch=lambda scene: scene.host.count_refused_descriptors(), succeeded=exceeds(lambda _: 0),
        uncontrolled="the control runs as root, which is exempt",
    ),
    Attempt(
        name="queues-of-the-machine", category="fd exhaustion",
        tries="takes all queues for asynchronous I/O that the machine has.",
        python="""
for _ in range(2000):
    if libc.syscall(@{NR_io_setup}, 32, ctypes.byref(ctypes.c_ulong(0))) != 0: break
time.sleep(1)
""",
        watch=_queues, succeeded=exceeds(lambda _: int(Path("/proc/sys/fs/aio-max-nr").read_text()) // 2),
    ),
)  # fmt: skip
