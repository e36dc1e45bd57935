"""The tree and git directory in which an agent plants its tricks; the agent may write anything in both."""

import os
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha1
from pathlib import Path
from typing import Final

from bench.support.hostile_trees.ground import FORGED, Ground, plain

_PROGRAM: Final = "evil.sh"


@dataclass(frozen=True, slots=True)
class Lair:
    ground: Ground
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
            file.write_text(f'#!/bin/sh\necho "$*" >> {self.ground.mark}\n')
            file.chmod(0o755)
        return str(file)

    def git(self, script: str) -> str:
        return plain(self.tree, script, GIT_ALTERNATE_OBJECT_DIRECTORIES=str(self.mirror / "objects"))

    def config(self, key: str, value: str | None = None, *, file: Path | None = None) -> None:
        target = file or self.git_dir / "config"
        plain(Path("/"), f'git config --file "$FILE" --replace-all {key} "$VALUE"', FILE=str(target),
              VALUE=self.program if value is None else value)  # fmt: skip

    def write(self, path: str, content: str = "changed\n") -> Path:
        file = self.tree / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
        return file

    def hook(self, name: str, directory: str = ".git/hooks") -> None:
        self.write(f"{directory}/{name}", f"#!/bin/sh\nexec {self.program}\n").chmod(0o755)

    def nested(self, path: str = "nested", commits: int = 1) -> Path:
        at = self.tree / path
        at.mkdir()
        plain(at, "git init -q -b main")
        for number in range(commits):
            (at / "file").write_text(f"{number}\n")
            plain(at, "git add -A && git commit -qm nested")
        return at

    def blob(self, path: str = "file") -> str:
        return self.git(f"git rev-parse HEAD:{path}").strip()

    def give_away(self) -> None:
        """Makes the agent's user the owner of all files in the tree."""
        if os.geteuid() != 0:
            return
        status = self.tree.stat()
        for directory, folders, files in os.walk(self.tree):
            for name in (*folders, *files):
                os.chown(Path(directory, name), status.st_uid, status.st_gid, follow_symlinks=False)


Plant = Callable[[Lair], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trick:
    name: str
    plant: Plant
    naive: str
    """Shell commands with which the trick works against plain git in the tree."""
    meanwhile: Callable[[Lair, int], None] | None = None
    """An action that the agent repeats in a thread during the host's operations."""
    in_project: bool = True
    """Whether the trick is also planted in the project's repository, from which the host fetches."""


def forge_loose(lair: Lair) -> None:
    name, content = lair.blob(), FORGED.encode()
    file = lair.git_dir / "objects" / name[:2] / name[2:]
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(zlib.compress(b"blob %d\0" % len(content) + content, 9))


def forge_pack(lair: Lair) -> None:
    """Writes a pack of one object whose index gives it the name of another object."""
    name, content = bytes.fromhex(lair.blob()), FORGED.encode()
    size, first = len(content) >> 4, 0x30 | len(content) & 15
    head = bytes([first | 0x80, size])  # fits into two bytes
    body = struct.pack(">4sII", b"PACK", 2, 1) + head + zlib.compress(content, 9)
    pack = body + sha1(body, usedforsecurity=False).digest()
    fanout = b"".join(struct.pack(">I", int(number >= name[0])) for number in range(256))
    crc = struct.pack(">I", zlib.crc32(body[12:]))
    index = b"\xfftOc" + struct.pack(">I", 2) + fanout + name + crc + struct.pack(">I", 12) + pack[-20:]
    index += sha1(index, usedforsecurity=False).digest()
    place = lair.git_dir / "objects" / "pack"
    place.mkdir(exist_ok=True)
    stem = f"pack-{sha1(name, usedforsecurity=False).hexdigest()}"
    (place / f"{stem}.pack").write_bytes(pack)
    (place / f"{stem}.idx").write_bytes(index)
