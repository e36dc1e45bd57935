"""A diff is the same from the host's git directory and from the object store, and no temporary files remain."""

import asyncio
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from footplate.domain.addresses import Reach
from footplate.domain.errors import Permanent
from footplate.domain.running import KeptTree
from footplate.domain.snapshots import SCRATCH, KeptSnapshot, TreeDiff
from footplate.store.objects import Objects
from footplate.trees.keeping import Keeper
from footplate.trees.mirrors import Mirrors
from footplate.trees.reading import DiffReader
from footplate.trees.sessions import SessionTrees

pytestmark = pytest.mark.timing


@dataclass
class Story:
    """A session that changed its one file three times."""

    data: Path
    reader: DiffReader
    kept: list[KeptSnapshot]

    def diff(self, old: int | None, new: int | None, **fields: object) -> TreeDiff:
        made = TreeDiff(
            organisation="org",
            session_id="sesn_1",
            owners=(),
            tree=SCRATCH,
            name="scratch",
            beside=False,
            old=None if old is None else self.kept[old],
            new=None if new is None else self.kept[new],
        )
        return replace(made, **fields)  # type: ignore[arg-type]

    async def patch(self, diff: TreeDiff) -> bytes:
        async with self.reader.patch(diff) as pieces:
            return b"".join([piece async for piece in pieces])

    def lose_the_host(self) -> None:
        shutil.rmtree(self.data / "trees")

    def left(self) -> list[Path]:
        place = self.data / "diffs"
        return [*place.iterdir()] if place.exists() else []


@pytest.fixture
async def story(tmp_path: Path) -> Story:
    data, objects = tmp_path / "data", Objects.open(None, tmp_path)
    files = tmp_path / "tree"
    files.mkdir()
    mirrors = Mirrors(data, root="/", address_policy=Reach(), seconds=1)
    trees = SessionTrees(data, mirrors, Keeper(objects), seconds=10)
    tree = KeptTree(organisation="org", session_id="sesn_1", project=None, files=files)
    kept: list[KeptSnapshot] = []
    for number in range(3):
        (files / "file").write_text("".join(f"line {n} of {number}\n" for n in range(50)))
        found = await trees.store_snapshot(tree, kept[-1] if kept else None)
        assert found is not None
        kept.append(found)
    return Story(data, DiffReader(data, objects, max_concurrent=1), kept)


@pytest.mark.parametrize(("old", "new"), [(None, 0), (0, 2), (2, 0), (None, 2)])
async def test_it_is_the_same_from_the_store_alone(story: Story, old: int | None, new: int) -> None:
    diff = story.diff(old, new)
    patch, files = await story.patch(diff), await story.reader.changes(diff)
    assert patch.startswith(b"diff --git a/file b/file\n")
    assert [(file.path, file.added) for file in files] == [(b"file", 50)]
    story.lose_the_host()
    assert (await story.patch(diff), await story.reader.changes(diff)) == (patch, files)
    assert story.left() == []


async def test_nothing_is_asked_of_anybody_where_nothing_changed(story: Story) -> None:
    shutil.rmtree(story.data)
    for diff in (story.diff(1, 1), story.diff(None, None)):
        assert (await story.patch(diff), await story.reader.changes(diff)) == (b"", ())
    assert not story.data.exists()


async def test_a_fork_reads_what_its_parents_packs_have(story: Story) -> None:
    story.lose_the_host()
    assert await story.patch(story.diff(0, 1, session_id="sesn_2", owners=("sesn_1",)))
    with pytest.raises(Permanent, match="not in the object store"):
        await story.patch(story.diff(0, 1, session_id="sesn_2"))


async def test_who_leaves_early_leaves_nothing_and_makes_room(story: Story) -> None:
    story.lose_the_host()
    async with story.reader.patch(story.diff(0, 1)) as pieces:
        assert await anext(pieces)
        assert len(story.left()) == 1
        waiting = asyncio.create_task(story.patch(story.diff(0, 1)))
        await asyncio.sleep(0.05)
        assert not waiting.done()
    assert await waiting
    assert story.left() == []
