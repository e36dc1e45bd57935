"""Runs the attack of another local user and reports what it achieved."""

import asyncio
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.prove.figure import require
from bench.support.shared_host.dev_server import DevServer

_MAIN: Final = Path(__file__).with_name("other_user_main.py")
_UID: Final = 54_321
"""An unused user id. It is not `nobody`, because PostgreSQL may run as that user here."""
_MIN_PORTS: Final = 4
_PYTHON: Final = "/usr/bin/python3"


@dataclass(frozen=True, slots=True)
class Attempts:
    tried: int
    achieved: list[str]
    at_ports: int = 0
    """How many of the tries were against a listening port; the others were against files, sockets and processes."""


async def attack_as_other_user(dev: DevServer) -> Attempts:
    require(holds=os.geteuid() == 0, otherwise="root is needed to become another user")
    setpriv = shutil.which("setpriv") or "/usr/bin/setpriv"
    ports = dev.listening_ports()
    require(holds=len(ports) >= _MIN_PORTS, otherwise=f"only the ports {ports} are listening")
    given = {
        "ports": ports,
        "pids": [process.pid for process in dev.processes()],
        "files": [str(path) for path in dev.data.rglob("*") if path.is_file()],
        "sockets": [str(path) for path in dev.data.rglob("*") if path.is_socket()],
        "secrets": [hashlib.sha256(secret.encode()).hexdigest() for secret in dev.secrets().values()],
    }
    with _readable_copy() as program:
        process = await asyncio.create_subprocess_exec(
            *(setpriv, f"--reuid={_UID}", f"--regid={_UID}", "--clear-groups", "--inh-caps=-all"),
            *("--bounding-set=-all", "--no-new-privs", "--", _PYTHON, "-I", str(program)),
            cwd="/",
            env={"PATH": "/usr/bin:/bin"},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        output, _ = await process.communicate(json.dumps(given).encode())
    require(holds=process.returncode == 0, otherwise="the other user's program failed")
    found = json.loads(output)
    require(holds=found["user"] == _UID, otherwise="the attack did not run as another user")
    return Attempts(found["tried"], found["achieved"], found["at_ports"])


@contextmanager
def _readable_copy() -> Iterator[Path]:
    """Copies the program to where the other user can read it, which is not the case below /root."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        program = Path(shutil.copy(_MAIN, directory))
        program.chmod(0o644)
        yield program
