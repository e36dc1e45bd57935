"""Many packs are merged into few without losing an object: with open readers, shared packs, and after a kill."""

import asyncio
import itertools
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.integration.trees.snapshot_fixtures import make_host
from tests.integration.trees.test_session_trees import SESSION, Host, git, project, repository

from footplate.domain.ports.engine import SessionTree
from footplate.trees import pack_merging
from footplate.trees.checkout import write_alternates
from footplate.trees.git import Git
from footplate.trees.object_database import ObjectDatabase, count_packs
from footplate.trees.pack_merging import MAX_UNMERGED, merge_packs

pytestmark = pytest.mark.timing

_FEW = 3
_MERGE = """
import asyncio, pathlib, sys
from footplate.trees.pack_merging import merge_packs
print("ready", flush=True)
asyncio.run(merge_packs(pathlib.Path(sys.argv[1]), seconds=60))
"""


async def add_packs(git_dir: Path, count: int, size: int = 200) -> list[str]:
    """Adds packs of one tree each, which nothing refers to."""
    trees = []
    with ObjectDatabase(await make_host(git_dir.with_name(f"{git_dir.name}-source"))) as source:
        for number in range(count):
            blob = source.write_blob(f"{git_dir} {number} ".encode() + os.urandom(size))
            tree = await Git(git_dir=git_dir.with_name(f"{git_dir.name}-source")).run(
                "mktree", stdin=f"100644 blob {blob}\tfile\n".encode()
            )
            trees.append(tree.decode().strip())
            await Git(git_dir=git_dir).run("index-pack", "--stdin", stdin=source.build_pack([trees[-1], blob]))
    return trees


async def read_files(git_dir: Path, trees: list[str]) -> bytes:
    stdin = "".join(f"{tree}:file\n" for tree in trees).encode()
    output = await Git(git_dir=git_dir).run("cat-file", "--batch", stdin=stdin)
    assert b" missing\n" not in output
    return output


async def test_small_packs_are_merged_and_nothing_else_changes(tmp_path: Path) -> None:
    mirror, host = await make_host(tmp_path / "mirror"), await make_host(tmp_path / "host.git")
    write_alternates(host / "objects", str(mirror / "objects"))
    shared, own = await add_packs(mirror, _FEW), await add_packs(host, MAX_UNMERGED)
    loose = (await Git(git_dir=host).run("hash-object", "-w", "--stdin", stdin=b"loose")).decode().strip()
    await merge_packs(host, seconds=60)
    assert count_packs(host, alternates=False) == MAX_UNMERGED
    own += await add_packs(host, 1)
    before = await read_files(host, [*shared, *own])
    await merge_packs(host, seconds=60)
    assert count_packs(host, alternates=False) <= _FEW
    assert count_packs(mirror) == _FEW
    assert await read_files(host, [*shared, *own]) == before
    assert (host / "objects" / loose[:2] / loose[2:]).exists()
    assert not [path for path in host.iterdir() if path.name.startswith("work-")]
    await Git(git_dir=host).run("fsck", "--full", "--strict")


async def test_an_open_reader_finds_objects_of_removed_packs(tmp_path: Path) -> None:
    host = await make_host(tmp_path / "host.git")
    trees = await add_packs(host, MAX_UNMERGED + 1)
    with ObjectDatabase(host) as objects:
        assert objects.find_entry(trees[0], b"file")  # all packs are listed by now, but few are open
        await merge_packs(host, seconds=60)
        assert count_packs(host) <= _FEW
        assert all(objects.find_entry(tree, b"file") for tree in trees)


async def test_a_killed_merge_loses_nothing_and_the_next_one_completes_it(tmp_path: Path) -> None:
    host = await make_host(tmp_path / "host.git")
    trees = await add_packs(host, MAX_UNMERGED + 1, size=500_000)
    before = await read_files(host, trees)
    for milliseconds in itertools.count(0, 60):
        merging = await asyncio.create_subprocess_exec(sys.executable, "-c", _MERGE, str(host), stdout=subprocess.PIPE)
        assert merging.stdout is not None
        await merging.stdout.readline()
        await asyncio.sleep(milliseconds / 1000)
        if merging.returncode is None:
            merging.kill()  # git keeps running
        code = await merging.wait()
        assert await read_files(host, trees) == before, milliseconds
        if code == 0:
            break
    assert count_packs(host) <= MAX_UNMERGED
    assert {path.suffix for path in (host / "objects" / "pack").iterdir()} <= {".pack", ".idx", ".rev"}


@pytest.mark.parametrize("removed", [0, 1, 7])
async def test_a_merge_killed_while_removing_old_packs_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, removed: int
) -> None:
    host = await make_host(tmp_path / "host.git")
    trees = await add_packs(host, MAX_UNMERGED + 1)
    before = await read_files(host, trees)
    remove = pack_merging._remove_packs

    def killed(packs: Path, names: set[str]) -> None:
        remove(packs, set(sorted(names)[:removed]))
        raise asyncio.CancelledError

    monkeypatch.setattr(pack_merging, "_remove_packs", killed)
    with pytest.raises(asyncio.CancelledError):
        await merge_packs(host, seconds=60)
    assert await read_files(host, trees) == before
    monkeypatch.undo()
    await add_packs(host, MAX_UNMERGED)
    await merge_packs(host, seconds=60)
    assert count_packs(host) <= _FEW
    assert await read_files(host, trees) == before


async def test_one_merge_at_a_time_and_a_failed_one_is_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = await make_host(tmp_path / "host.git")
    await add_packs(host, MAX_UNMERGED + 1)
    runs: list[str] = []
    run = Git.run

    async def counted(self: Git, *argv: str, **options: object) -> bytes:
        runs.extend(argv[:1])
        return await run(self, *argv, **options)  # pyrefly: ignore[bad-argument-type]

    monkeypatch.setattr(Git, "run", counted)
    await asyncio.gather(*(merge_packs(host, seconds=0) for _ in range(3)))
    await merge_packs(host, seconds=60)
    assert runs == ["repack"]
    assert count_packs(host) > MAX_UNMERGED


async def test_at_the_end_of_a_turn_mirror_and_session_have_few_packs(tmp_path: Path) -> None:
    host = Host(tmp_path)
    user = repository(host.root / "app")
    based = await host.with_base(project())
    tree = await host.check_out(based)
    for number in range(MAX_UNMERGED + 1):
        (user / "file").write_text(f"{number}\n")
        git(user, "commit", "-qam", f"{number}")
        await host.trees.resolve_base("default", project())
    own = host.trees.private_dir("default", SESSION) / "host.git"
    trees = await add_packs(own, MAX_UNMERGED + 1)
    mirror = host.mirrors.mirror_path("default", based.id)
    assert min(count_packs(own, alternates=False), count_packs(mirror)) > MAX_UNMERGED
    tree_of_session = SessionTree(
        organisation="default", session_id=SESSION, project=based, files=tree, is_additional=False
    )
    await host.trees.stop_watching(tree_of_session)
    assert count_packs(own, alternates=False) <= _FEW
    async with asyncio.timeout(60):
        while count_packs(mirror) > _FEW:  # noqa: ASYNC110 - it is merged in the background
            await asyncio.sleep(0.05)
    await read_files(own, trees)
    assert git(tree, "status", "--porcelain") == ""
    assert git(tree, "log", "--format=%s") == "first"
    newest = await host.check_out(
        replace(project(), base=await host.trees.resolve_base("default", project())), session_id="sesn_2"
    )
    assert (newest / "file").read_text() == f"{MAX_UNMERGED}\n"
    modes = {path.stat().st_mode & 0o777 for path in (mirror / "objects" / "pack").iterdir()}
    assert modes == {0o444}  # readable for agents, whichever user they run as
