"""The tree and git directory in which an agent plants its tricks; the agent may write anything in both."""

import os
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha1
from pathlib import Path
from typing import Final

from bench.support.hostile_trees.fixture import FORGED, HostileTreeFixture, run_plain_git

_PROGRAM: Final = "evil.sh"


@dataclass(frozen=True, slots=True)
class AttackedTree:
    fixture: HostileTreeFixture
    tree: Path
    mirror: Path
    """The tree shares this mirror's objects. Only inside the sandbox does the agent's git find them by itself."""

    @property
    def git_dir(self) -> Path:
        return self.tree / ".git"

    @property
    def program(self) -> str:
        """The path of the agent's program, which is created on first use."""
        file = self.tree / _PROGRAM
        if not file.exists():
            file.write_text(f'#!/bin/sh\necho "$*" >> {self.fixture.mark}\n')
            file.chmod(0o755)
        return str(file)

    def run_git(self, script: str) -> str:
        return run_plain_git(self.tree, script, GIT_ALTERNATE_OBJECT_DIRECTORIES=str(self.mirror / "objects"))

    def set_config(self, key: str, value: str | None = None, *, file: Path | None = None) -> None:
        target = file or self.git_dir / "config"
        run_plain_git(Path("/"), f'git config --file "$FILE" --replace-all {key} "$VALUE"', FILE=str(target),
              VALUE=self.program if value is None else value)  # fmt: skip

    def write_file(self, path: str, content: str = "changed\n") -> Path:
        file = self.tree / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
        return file

    def write_hook(self, name: str, directory: str = ".git/hooks") -> None:
        self.write_file(f"{directory}/{name}", f"#!/bin/sh\nexec {self.program}\n").chmod(0o755)

    def create_nested_repository(self, path: str = "nested", commits: int = 1) -> Path:
        repository = self.tree / path
        repository.mkdir()
        run_plain_git(repository, "git init -q -b main")
        for number in range(commits):
            (repository / "file").write_text(f"{number}\n")
            run_plain_git(repository, "git add -A && git commit -qm nested")
        return repository

    def blob_id(self, path: str = "file") -> str:
        return self.run_git(f"git rev-parse HEAD:{path}").strip()

    def give_to_agent(self) -> None:
        """Makes the agent's user the owner of all files in the tree."""
        if os.geteuid() != 0:
            return
        status = self.tree.stat()
        for directory, folders, files in os.walk(self.tree):
            for name in (*folders, *files):
                os.chown(Path(directory, name), status.st_uid, status.st_gid, follow_symlinks=False)


Plant = Callable[[AttackedTree], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trick:
    name: str
    plant: Plant
    plain_git_script: str
    """Shell commands with which the trick works against plain git in the tree."""
    concurrent_action: Callable[[AttackedTree, int], None] | None = None
    """An action that the agent repeats in a thread during the host's operations."""
    in_project: bool = True
    """Whether the trick is also planted in the project's repository, from which the host fetches."""


def forge_loose_object(attacked: AttackedTree) -> None:
    name, content = attacked.blob_id(), FORGED.encode()
    file = attacked.git_dir / "objects" / name[:2] / name[2:]
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(zlib.compress(b"blob %d\0" % len(content) + content, 9))


def forge_pack(attacked: AttackedTree) -> None:
    """Writes a pack of one object whose index gives it the name of another object."""
    name, content = bytes.fromhex(attacked.blob_id()), FORGED.encode()
    size, first = len(content) >> 4, 0x30 | len(content) & 15
    head = bytes([first | 0x80, size])  # fits into two bytes
    body = struct.pack(">4sII", b"PACK", 2, 1) + head + zlib.compress(content, 9)
    pack = body + sha1(body, usedforsecurity=False).digest()
    fanout = b"".join(struct.pack(">I", int(number >= name[0])) for number in range(256))
    crc = struct.pack(">I", zlib.crc32(body[12:]))
    index = b"\xfftOc" + struct.pack(">I", 2) + fanout + name + crc + struct.pack(">I", 12) + pack[-20:]
    index += sha1(index, usedforsecurity=False).digest()
    pack_directory = attacked.git_dir / "objects" / "pack"
    pack_directory.mkdir(exist_ok=True)
    stem = f"pack-{sha1(name, usedforsecurity=False).hexdigest()}"
    (pack_directory / f"{stem}.pack").write_bytes(pack)
    (pack_directory / f"{stem}.idx").write_bytes(index)
