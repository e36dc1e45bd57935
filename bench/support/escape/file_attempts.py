"""Attempts to reach files of the host and of other sessions: by paths, links and races between the two."""

import asyncio
import contextlib
import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from bench.support.escape.attempt import Attempt, leaks
from bench.support.escape.attempt_context import AttemptContext
from footplate import environments

_CODE: Final = Path(environments.__file__).parent
_FLIP: Final = """
rm -rf swap swap.link swap.real; mkdir swap.real; echo nothing > swap.real/@{file}; ln -s @{place} swap.link
(while :; do mv -T swap.real swap 2>/dev/null; mv -T swap swap.real 2>/dev/null
  mv -T swap.link swap 2>/dev/null; mv -T swap swap.link 2>/dev/null; done) >/dev/null 2>&1 & disown
"""


def _file_changed(name: str) -> Callable[[AttemptContext], bool]:
    return lambda scene: scene.host.path(name).read_text() != "untouched"


def _restore(scene: AttemptContext) -> None:
    scene.host.path("victim").write_text("untouched")


def _appeared(directory: str) -> Callable[[AttemptContext], bool]:
    return lambda scene: Path(directory, f"footplate-{scene.host.fields['token']}").exists()


def _remove(directory: str) -> Callable[[AttemptContext], None]:
    return lambda scene: Path(directory, f"footplate-{scene.host.fields['token']}").unlink(missing_ok=True)


def _code_changed(scene: AttemptContext) -> bool:
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(_CODE.rglob("*.py")))).hexdigest()
    return digest != scene.host.fields.setdefault("code", digest)


async def _read_any(scene: AttemptContext, paths: Sequence[str]) -> bytes:
    output = bytearray()
    for path in paths:
        with contextlib.suppress(OSError):
            output += await scene.environment.read(path)
    return bytes(output)


async def _read_link(scene: AttemptContext) -> bytes:
    secret = scene.host.fields["secret"]
    await scene.environment.shell(f"ln -sf {secret} link; ln -sf {Path(secret).parent} folder", timeout=5)
    return await _read_any(scene, ["link", "folder/secret"])


async def _write_link(scene: AttemptContext) -> bytes:
    victim = scene.host.fields["victim"]
    await scene.environment.shell(f"ln -sf {victim} link; ln -sf {Path(victim).parent} folder", timeout=5)
    for path in ("link", "folder/victim", victim):
        with contextlib.suppress(OSError):
            await scene.environment.write(path, b"changed")
    return b""


async def _read_dots(scene: AttemptContext) -> bytes:
    secret = scene.host.fields["secret"]
    return await _read_any(scene, ["../" * 30 + secret.lstrip("/"), f"x/../../../../../../../../..{secret}", secret])


async def _list_host(scene: AttemptContext) -> bytes:
    found = bytearray()
    for path in (str(scene.host.path("listed")), "../" * 30 + str(scene.host.path("listed")).lstrip("/")):
        with contextlib.suppress(OSError):
            found += repr(await scene.environment.list_files(path)).encode()
    return bytes(found)


def _make_listed(scene: AttemptContext) -> None:
    scene.host.path("listed").mkdir(exist_ok=True)
    scene.host.path(
        "listed",
    ).joinpath(scene.host.token("listed")).touch()


async def _race_read(scene: AttemptContext) -> bytes:
    script = _FLIP.replace("@{file}", "secret").replace("@{place}", str(scene.host.directory))
    await scene.environment.shell(script, timeout=5)
    output = bytearray()
    for _ in range(150):
        output += await _read_any(scene, ["swap/secret", "swap.link/secret"])
    return bytes(output)


async def _race_write(scene: AttemptContext) -> bytes:
    script = _FLIP.replace("@{file}", "victim").replace("@{place}", str(scene.host.directory))
    await scene.environment.shell(script, timeout=5)
    for _ in range(150):
        for path in ("swap/victim", "swap.link/victim"):
            with contextlib.suppress(OSError):
                await scene.environment.write(path, b"changed")
        await asyncio.sleep(0)
    return b""


ATTEMPTS: Final = (
    Attempt(
        name="read-a-host-file", category="host files", tries="reads a world-readable file of the host.",
        shell="cat @{secret}", succeeded=leaks("secret"),
    ),
    Attempt(
        name="read-the-data-directory", category="host files", tries="reads an object in Footplate's data directory.",
        shell="cat @{data}", succeeded=leaks("data"),
    ),
    Attempt(
        name="read-the-workers-home", category="host files", tries="reads a key in the worker's home.",
        shell="cat @{home}; cat /root/.ssh/* /home/*/.ssh/* ~/.ssh/*", succeeded=leaks("home"),
    ),
    Attempt(
        name="read-shadow", category="host files", tries="reads the host's /etc/shadow.",
        shell="cat /etc/shadow /etc/gshadow /etc/sudoers", root_only=True,
        succeeded=lambda scene: any(
            line in scene.output for line in Path("/etc/shadow").read_bytes().split(b"\n") if line.count(b":") > 5
        ),
    ),
    Attempt(
        name="search-the-disk", category="host files", tries="searches everything that it can see for a secret.",
        shell="timeout 12 grep -rlsF --exclude-dir=proc --exclude-dir=sys --exclude-dir=usr @{secret_word} / ; true",
        succeeded=lambda scene: b"/secret\n" in scene.output, seconds=20,
        uncontrolled="a search of a whole machine takes hours",
    ),
    Attempt(
        name="write-a-host-file", category="host files", tries="writes a world-writable file of the host.",
        shell="echo changed > @{victim}", succeeded=_file_changed("victim"), after=_restore,
    ),
    Attempt(
        name="write-to-usr", category="host files", tries="puts a file under /usr.",
        shell="echo x > /usr/local/footplate-@{token}", root_only=True,
        succeeded=_appeared("/usr/local"), after=_remove("/usr/local"),
    ),
    Attempt(
        name="write-to-etc", category="host files", tries="puts a file under /etc.",
        shell="echo x > /etc/footplate-@{token}", root_only=True,
        succeeded=_appeared("/etc"), after=_remove("/etc"),
    ),
    Attempt(
        name="write-our-code", category="host files", tries="changes the program of its init process.",
        shell="for f in $(find /run/footplate @{code_place} -name '*.py' 2>/dev/null); do echo '#' >> $f; done",
        before=lambda scene: (scene.host.fields.pop("code", None), _code_changed(scene), None)[2],
        succeeded=_code_changed, uncontrolled="it would change the program under test",
    ),
    Attempt(
        name="hard-link-a-host-file", category="host files", tries="creates a hard link to a file of the host.",
        shell="ln @{secret} hard && cat hard; cp --reflink=always @{secret} soft && cat soft; cat hard",
        succeeded=leaks("secret"), uncontrolled="the tree may be on another disk than the file",
    ),
    Attempt(
        name="read-through-a-link-by-tool", category="host files",
        tries="has the worker's read tool follow a link to a file of the host.",
        tool=_read_link, succeeded=leaks("secret"),
    ),
    Attempt(
        name="write-through-a-link-by-tool", category="host files",
        tries="has the worker's write tool follow a link to a file of the host.",
        tool=_write_link, succeeded=_file_changed("victim"), after=_restore,
    ),
    Attempt(
        name="dot-dot-in-a-command", category="..", tries="climbs out of its tree by `..`.",
        shell="cat ../../../../../../../../../../../../@{secret}; cd ..; cd ..; cat ./@{secret}",
        succeeded=leaks("secret"),
    ),
    Attempt(
        name="dot-dot-by-tool", category="..", tries="gives the read tool a path with `..`.",
        tool=_read_dots, succeeded=leaks("secret"),
    ),
    Attempt(
        name="dot-dot-by-listing", category="..", tries="lists a directory of the host.",
        before=_make_listed, tool=_list_host, succeeded=leaks("listed"),
    ),
    Attempt(
        name="dot-dot-after-chroot", category="..",
        tries="escapes from its root with another chroot and `..`.",
        python="""
os.makedirs("jail", exist_ok=True)
outside = os.open(".", os.O_RDONLY)
try:
    os.chroot("jail")
    os.fchdir(outside)
    for _ in range(64): os.chdir("..")
    os.chroot(".")
except OSError as error: print(error)
print(open("@{secret}").read())
""",
        succeeded=leaks("secret"),
    ),
    Attempt(
        name="dot-dot-from-a-descriptor", category="..",
        tries="looks for inherited descriptors, and climbs from them.",
        python="""
for fd in range(3, 1024):
    for path in ("../../../../../../../../../..@{secret}", "@{secret}".lstrip("/")):
        try: print(os.read(os.open(path, os.O_RDONLY, dir_fd=fd), 100))
        except OSError: pass
    try: print(fd, os.readlink(f"/proc/self/fd/{fd}"))
    except OSError: pass
""",
        succeeded=leaks("secret"), uncontrolled="no backend passes descriptors on",
    ),
    Attempt(
        name="race-a-read", category="link races",
        tries="swaps a directory for a link while the worker reads in it.",
        tool=_race_read, succeeded=leaks("secret"), seconds=60,
    ),
    Attempt(
        name="race-a-write", category="link races",
        tries="swaps a directory for a link while the worker writes in it.",
        tool=_race_write, succeeded=_file_changed("victim"), after=_restore, seconds=60,
    ),
    Attempt(
        name="race-a-temporary-file", category="link races",
        tries="replaces the temporary files of the write tool by links.",
        tool=_write_link, succeeded=_file_changed("victim"), after=_restore,
        shell="(while :; do for f in .*.tmp; do ln -sf @{victim} $f; done; done) >/dev/null 2>&1 & disown",
    ),
    Attempt(
        name="read-another-tree", category="other sessions' trees", tries="reads a file in another session's tree.",
        shell="cat @{other_tree}/secret; cat @{other_tree}/../*/secret", succeeded=leaks("other tree"),
    ),
    Attempt(
        name="write-another-tree", category="other sessions' trees", tries="writes into another session's tree.",
        shell="echo changed > @{other_tree}/written",
        succeeded=lambda scene: Path(scene.host.fields["other_tree"], "written").exists(),
        after=lambda scene: Path(scene.host.fields["other_tree"], "written").unlink(missing_ok=True),
    ),
    Attempt(
        name="list-the-trees", category="other sessions' trees", tries="lists the sessions of this machine.",
        shell="ls -R @{other_tree}/../.. ; ls /workspace/.. /mnt/session/..",
        succeeded=leaks("listed tree"),
    ),
    Attempt(
        name="read-anothers-home", category="other sessions' trees",
        tries="reads a file in the home of another session.",
        shell="cat @{other_home}/of-home", succeeded=leaks("other home"),
    ),
    Attempt(
        name="read-anothers-tmp", category="other sessions' trees",
        tries="reads a file that another session wrote to /tmp.",
        shell="cat /tmp/@{shared}; grep -rs . /tmp /var/tmp", succeeded=leaks("other tmp"),
    ),
    Attempt(
        name="read-anothers-shared-memory", category="other sessions' trees",
        tries="reads a file that another session wrote to /dev/shm.",
        shell="cat /dev/shm/@{shared}; grep -rs . /dev/shm", succeeded=leaks("other shm"),
    ),
    Attempt(
        name="reach-anothers-root", category="other sessions' trees",
        tries="walks through /proc into the files that another session's processes see.",
        shell="cat /proc/*/root@{other_tree}/secret /proc/*/root/workspace/secret /proc/*/cwd/secret",
        succeeded=leaks("other tree"),
    ),
)  # fmt: skip
