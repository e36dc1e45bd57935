"""Repositories that would fill the host's disk: a tree bomb, a large file, one fetch after the other."""

import hashlib
import os
import struct
import subprocess
import zlib
from pathlib import Path

import pytest
from tests.integration.trees.test_delivery import World, change
from tests.integration.trees.test_session_trees import git, project, repository

from footplate.domain.errors import Conflict, Unavailable
from footplate.domain.network.address_policy import AddressPolicy
from footplate.trees.delivery import agent_commits
from footplate.trees.delivery.agent_commits import CommitCollectionFailed
from footplate.trees.git import Git
from footplate.trees.projects import size_limits
from footplate.trees.projects.mirrors import Mirrors
from footplate.trees.projects.size_limits import RepositoryTooLarge

pytestmark = pytest.mark.timing

MAX_BYTES = 1 << 20


@pytest.fixture
def mirrors(tmp_path: Path) -> Mirrors:
    return Mirrors(
        tmp_path / "data",
        root=str(tmp_path / "projects"),
        address_policy=AddressPolicy(),
        seconds=30,
        max_bytes=MAX_BYTES,
    )


def run_git(directory: Path, *argv: str, stdin: bytes) -> str:
    return (
        subprocess.run(["git", *argv], cwd=directory, input=stdin, check=True, capture_output=True)
        .stdout.decode()
        .strip()
    )


def explode(at: Path, *, wide: int, deep: int, ref: str = "HEAD") -> None:
    """Replaces the content of a ref by a commit of some kilobytes that stands for `wide ** deep` files."""
    found = run_git(at, "hash-object", "-w", "--stdin", stdin=b"x" * 100)
    kind = "100644 blob"
    for _ in range(deep):
        listed = "".join(f"{kind} {found}\t{number:02d}\n" for number in range(wide))
        found, kind = run_git(at, "mktree", stdin=listed.encode()), "040000 tree"
    commit = run_git(at, "-c", "user.name=a", "-c", "user.email=a@b", "commit-tree", found, "-p", ref, stdin=b"bomb")
    git(at, "update-ref", ref, commit)


async def test_a_tree_bomb_is_not_checked_out(mirrors: Mirrors, tmp_path: Path) -> None:
    explode(repository(tmp_path / "projects" / "app"), wide=20, deep=9)
    with pytest.raises(RepositoryTooLarge, match="files of commit"):
        await mirrors.refresh("default", project())


async def test_a_fetch_ends_at_the_limit_and_stores_nothing(mirrors: Mirrors, tmp_path: Path) -> None:
    source = repository(tmp_path / "projects" / "app")
    first = await mirrors.refresh("default", project())
    (source / "large").write_bytes(os.urandom(2 * MAX_BYTES))
    git(source, "add", "-A")
    git(source, "commit", "-qm", "large")
    for _ in range(2):
        with pytest.raises(RepositoryTooLarge, match="a fetch needs more"):
            await mirrors.refresh("default", project())
    mirror = mirrors.mirror_path("default", project().id)
    assert sum(path.stat().st_size for path in mirror.rglob("*") if path.is_file()) < MAX_BYTES // 2
    git(source, "reset", "-q", "--hard", "HEAD~1")
    assert await mirrors.refresh("default", project()) == first


async def test_many_fetches_do_not_exceed_the_limit(mirrors: Mirrors, tmp_path: Path) -> None:
    source = repository(tmp_path / "projects" / "app")

    async def grow() -> None:
        for _ in range(8):
            (source / "file").write_bytes(os.urandom(MAX_BYTES // 4))
            git(source, "commit", "-qam", "more")
            await mirrors.refresh("default", project())

    with pytest.raises(RepositoryTooLarge):
        await grow()
    mirror = mirrors.mirror_path("default", project().id)
    assert sum(path.stat().st_size for path in mirror.rglob("*") if path.is_file()) < 1.2 * MAX_BYTES


async def test_an_endless_list_of_branches_is_refused(
    mirrors: Mirrors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = repository(tmp_path / "projects" / "app")
    for number in range(50):
        git(source, "branch", f"b{number}")
    monkeypatch.setattr(size_limits, "MAX_LISTING_BYTES", 1000)
    with pytest.raises((RepositoryTooLarge, Unavailable), match="branches and tags"):
        await mirrors.refresh("default", project())


async def test_a_branch_that_became_a_tree_bomb_is_not_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(size_limits, "MAX_FILES", 10_000)
    world = World(tmp_path)
    (world.user / "text").write_text("one\ntwo\n")
    git(world.user, "add", "-A")
    git(world.user, "commit", "-qm", "first")
    git(world.user, "branch", "next")
    session = await world.session()
    change(session.tree, 1, "three")
    (session.tree / "text").rename(session.tree / "renamed")
    await session.turn()
    explode(world.user, wide=20, deep=9, ref="refs/heads/next")
    with pytest.raises(Conflict, match="too large"):
        await session.merge()


def bundle_of_copies(size: int, copies: int) -> bytes:
    """Returns a few kilobytes: a file of zeros, and deltas that make `copies` files of the same size from it."""
    base = bytes(size)
    name = hashlib.sha1(b"blob %d\0" % size + base, usedforsecurity=False).digest()
    objects = [_head(3, size) + zlib.compress(base)]
    for number in range(copies):
        steps = b"".join(b"\xf0" + min(0xFFFFFF, size - at).to_bytes(3, "little") for at in range(0, size, 0xFFFFFF))
        end = b"%08d" % number
        change = _varint(size) + _varint(size + len(end)) + steps + bytes([len(end)]) + end
        objects.append(_head(7, len(change)) + name + zlib.compress(change))
    pack = b"PACK" + struct.pack(">II", 2, len(objects)) + b"".join(objects)
    return b"# v2 git bundle\n\n" + pack + hashlib.sha1(pack, usedforsecurity=False).digest()


def _varint(number: int) -> bytes:
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + _varint(rest) if rest else bytes([low])


def _head(kind: int, size: int) -> bytes:
    first, rest = kind << 4 | size & 15, size >> 4
    return bytes([first | 0x80]) + _varint(rest) if rest else bytes([first])


async def test_a_bundle_that_takes_hours_to_unpack_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(tmp_path, "init", "-q", "--bare", "host.git")
    host = Git(git_dir=tmp_path / "host.git")
    await agent_commits.import_bundle(bundle_of_copies(1 << 20, 2), host)
    monkeypatch.setattr(agent_commits, "MAX_CPU_SECONDS", 1)
    content = bundle_of_copies(64 << 20, 100)
    assert len(content) < 1 << 20
    with pytest.raises(CommitCollectionFailed):
        await agent_commits.import_bundle(content, host)
    assert not [*(tmp_path / "host.git" / "objects" / "pack").glob("tmp_*")]
