"""A diff is the same from the host's git directory and from the object store, and no temporary files remain."""

import asyncio
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from footplate.domain.errors import Permanent
from footplate.domain.files.snapshots import SCRATCH_TREE, StoredSnapshot, TreeDiff
from footplate.domain.network.address_policy import AddressPolicy
from footplate.domain.ports.engine import SessionTree
from footplate.store.object_store import Objects
from footplate.trees.diffs.diff_reader import DiffReader
from footplate.trees.projects.mirrors import Mirrors
from footplate.trees.session_trees import SessionTrees
from footplate.trees.snapshots.upload import SnapshotUploader

pytestmark = pytest.mark.timing


@dataclass
class ChangedSession:
    """A session that changed its one file three times."""

    data: Path
    reader: DiffReader
    snapshots: list[StoredSnapshot]

    def diff(self, old: int | None, new: int | None, **fields: object) -> TreeDiff:
        made = TreeDiff(
            organisation="org",
            session_id="sesn_1",
            ancestors=(),
            tree=SCRATCH_TREE,
            name="scratch",
            is_additional=False,
            old=None if old is None else self.snapshots[old],
            new=None if new is None else self.snapshots[new],
        )
        return replace(made, **fields)  # pyrefly: ignore[bad-argument-type]

    async def patch(self, diff: TreeDiff) -> bytes:
        async with self.reader.patch(diff) as pieces:
            return b"".join([piece async for piece in pieces])

    def delete_host_data(self) -> None:
        shutil.rmtree(self.data / "trees")

    def temporary_files(self) -> list[Path]:
        directory = self.data / "diffs"
        return [*directory.iterdir()] if directory.exists() else []


@pytest.fixture
async def changed_session(tmp_path: Path) -> ChangedSession:
    data, objects = tmp_path / "data", Objects.open(None, tmp_path)
    files = tmp_path / "tree"
    files.mkdir()
    mirrors = Mirrors(data, root="/", address_policy=AddressPolicy(), seconds=1)
    trees = SessionTrees(data, mirrors, SnapshotUploader(objects), seconds=10)
    tree = SessionTree(organisation="org", session_id="sesn_1", project=None, files=files)
    stored: list[StoredSnapshot] = []
    for number in range(3):
        (files / "file").write_text("".join(f"line {n} of {number}\n" for n in range(50)))
        found = await trees.store_snapshot(tree, stored[-1] if stored else None)
        assert found is not None
        stored.append(found)
    return ChangedSession(data, DiffReader(data, objects, max_concurrent=1), stored)


@pytest.mark.parametrize(("old", "new"), [(None, 0), (0, 2), (2, 0), (None, 2)])
async def test_a_diff_from_the_object_store_alone_is_the_same(
    changed_session: ChangedSession, old: int | None, new: int
) -> None:
    diff = changed_session.diff(old, new)
    patch, found = await changed_session.patch(diff), await changed_session.reader.changes(diff)
    assert patch.startswith(b"diff --git a/file b/file\n")
    assert [(file.path, file.added) for file in found.files] == [(b"file", 50)]
    changed_session.delete_host_data()
    assert (await changed_session.patch(diff), await changed_session.reader.changes(diff)) == (patch, found)
    assert changed_session.temporary_files() == []


async def test_an_empty_diff_reads_nothing(changed_session: ChangedSession) -> None:
    shutil.rmtree(changed_session.data)
    assert await changed_session.patch(changed_session.diff(1, 1)) == b""
    assert await changed_session.patch(changed_session.diff(None, None)) == b""
    assert (await changed_session.reader.changes(changed_session.diff(None, None))).files == ()
    assert not changed_session.data.exists()


async def test_a_fork_reads_its_parents_packs(changed_session: ChangedSession) -> None:
    changed_session.delete_host_data()
    assert await changed_session.patch(changed_session.diff(0, 1, session_id="sesn_2", ancestors=("sesn_1",)))
    with pytest.raises(Permanent, match="not in the object store"):
        await changed_session.patch(changed_session.diff(0, 1, session_id="sesn_2"))


async def test_closing_a_diff_early_removes_its_files_and_frees_its_slot(changed_session: ChangedSession) -> None:
    changed_session.delete_host_data()
    async with changed_session.reader.patch(changed_session.diff(0, 1)) as pieces:
        assert await anext(pieces)
        assert len(changed_session.temporary_files()) == 1
        waiting = asyncio.create_task(changed_session.patch(changed_session.diff(0, 1)))
        await asyncio.sleep(0.05)
        assert not waiting.done()
    assert await waiting
    assert changed_session.temporary_files() == []
