"""Garbage collection retains an object exactly as long as the log needs it, for any history."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footplate.domain.files.object_gc import (
    ObjectVerdict,
    RetentionReason,
    SessionReferences,
    StoredObject,
    judge_base_packs,
    judge_caches,
    judge_session_objects,
    judge_uploaded_files,
)
from footplate.domain.files.pack_names import NO_BASE, short_id
from footplate.domain.files.snapshots import Snapshot
from footplate.trees.snapshots import packs

NOW = datetime(2026, 1, 2, tzinfo=UTC)
OLD = NOW - timedelta(days=1)
FOLDER = "org/sesn_1"
BASE = "b" * 40


def make_object(inside: str, *, written_at: datetime = OLD, folder: str = FOLDER) -> StoredObject:
    return StoredObject(f"{folder}/{inside}", 10, written_at)


def reasons_by_name(verdicts: Sequence[ObjectVerdict]) -> dict[str, RetentionReason]:
    return {verdict.stored.key.removeprefix(f"{FOLDER}/"): verdict.reason for verdict in verdicts}


@dataclass
class Session:
    """The packs of a session: those that the log refers to, and those of turns that were interrupted before that."""

    folder: str
    last: tuple[int, Snapshot] | None
    """The last snapshot in the log. A fork begins with its parent's."""
    forked: bool = False
    rows: list[tuple[int, Snapshot]] = field(default_factory=list)
    names: set[str] = field(default_factory=set)

    def take_snapshot(self, content: int, *, committed: bool) -> None:
        snapshot = Snapshot(f"{content:040d}")
        number, before = (0, None) if self.last is None else (self.last[0] + 1, self.last[1])
        if snapshot == before:
            return
        step = packs.SnapshotStep(number, snapshot, before)
        parts = 1 + content % 2
        names = [step.part_name(part, parts, "d" * 16) for part in range(parts)]
        self.names |= {*names}
        if committed:
            self.last = (number, snapshot)
            self.rows.append(self.last)

    @property
    def references(self) -> SessionReferences:
        return SessionReferences(state="living", is_fork=self.forked, snapshots={"scratch": self.rows}, bases=[BASE])

    def collect(self) -> None:
        found = [make_object(f"trees/scratch/{name}", folder=self.folder) for name in self.names]
        for verdict in judge_session_objects(self.references, self.folder, found, before=NOW):
            assert verdict.reason in {RetentionReason.FILES, RetentionReason.CUT_OFF}
            if verdict.reason.is_deletable:
                self.names.remove(verdict.stored.key.rpartition("/")[2])


STEPS = st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=12)


@given(first=STEPS, of_fork=STEPS, later=STEPS, based=st.booleans())
def test_every_snapshot_can_be_restored_and_nothing_else_remains(
    first: list[tuple[int, bool]],
    of_fork: list[tuple[int, bool]],
    later: list[tuple[int, bool]],
    based: bool,  # noqa: FBT001 - drawn
) -> None:
    known = Snapshot(BASE) if based else None
    parent = Session(FOLDER, (0, Snapshot(BASE)) if based else None)
    for content, committed in first:
        parent.take_snapshot(content, committed=committed)
    fork = Session("org/sesn_2", parent.last, forked=True)
    for session, steps in ((fork, of_fork), (parent, later)):
        for content, committed in steps:
            session.take_snapshot(content, committed=committed)
    parent.collect()
    fork.collect()
    used: set[str] = set()
    for session, names in ((parent, parent.names), (fork, [*fork.names, *parent.names])):
        for number, snapshot in session.rows:
            used |= {name for pack in packs.find_pack_chain(names, number, snapshot, known) for name in pack.names}
    assert used == parent.names | fork.names


@given(count=st.integers(2, 20), merges=st.lists(st.tuples(st.integers(-1, 18), st.integers(2, 20)), max_size=6))
def test_merged_packs_of_snapshots_in_the_log_are_retained_and_shorten_chains(
    count: int, merges: list[tuple[int, int]]
) -> None:
    session = Session(FOLDER, None)
    for content in range(count):
        session.take_snapshot(content, committed=True)
    for first, steps in merges:
        if (last := first + steps) < count:
            previous = None if first < 0 else session.rows[first][1]
            session.names.add(packs.SnapshotStep(last, session.rows[last][1], previous, steps).part_name(0, 1))
    cut_off = packs.SnapshotStep(count, Snapshot("c" * 40), session.rows[0][1], count).part_name(0, 1)
    names = {*session.names}
    session.names.add(cut_off)
    session.collect()
    assert session.names == names
    for number, snapshot in session.rows:
        chain = packs.find_pack_chain(names, number, snapshot)
        assert sum(pack.steps for pack in chain) == number + 1
        assert (len(chain) < number + 1) == any(first + steps <= number for first, steps in merges)


def test_recent_objects_are_retained() -> None:
    young = [
        make_object("trees/scratch/" + packs.SnapshotStep(0, Snapshot("a" * 40), None).part_name(0, 1), written_at=NOW)
    ]
    young += [make_object("body_1.json", written_at=NOW)]
    for references in (SessionReferences(state="living"), SessionReferences(state="unknown")):
        assert {verdict.reason for verdict in judge_session_objects(references, FOLDER, young, before=OLD)} == {
            RetentionReason.YOUNG
        }
    assert not any(
        verdict.reason.is_deletable for verdict in judge_base_packs([], young, has_unknown_base=False, before=OLD)
    )


@pytest.mark.parametrize(
    ("references", "expected"),
    [
        (SessionReferences(state="living"), RetentionReason.UNNAMED),
        (SessionReferences(state="living", is_busy=True), RetentionReason.BUSY),
        (SessionReferences(state="living", referenced_keys=[f"{FOLDER}/body_1.json"]), RetentionReason.NAMED),
        (SessionReferences(state="pinned"), RetentionReason.UNNAMED),
        (SessionReferences(state="deleting"), RetentionReason.DELETING),
        (SessionReferences(state="unknown"), RetentionReason.NO_SESSION),
    ],
)
def test_bodies_are_judged_by_the_state_of_their_session(
    references: SessionReferences, expected: RetentionReason
) -> None:
    assert reasons_by_name(judge_session_objects(references, FOLDER, [make_object("body_1.json")], before=NOW)) == {
        "body_1.json": expected
    }


def test_unknown_objects_are_retained_with_their_session() -> None:
    found = [
        make_object("later/thing"),
        make_object("trees/scratch/odd"),
        make_object("archive/1"),
        make_object("output_1.txt"),
        make_object("recordings/sevt_1.cast"),
    ]
    expected = {
        "later/thing": RetentionReason.UNKNOWN,
        "trees/scratch/odd": RetentionReason.UNKNOWN,
        "archive/1": RetentionReason.UNNAMED,
        "output_1.txt": RetentionReason.UNNAMED,
        "recordings/sevt_1.cast": RetentionReason.UNNAMED,
    }
    assert (
        reasons_by_name(judge_session_objects(SessionReferences(state="living"), FOLDER, found, before=NOW)) == expected
    )
    assert {
        verdict.reason
        for verdict in judge_session_objects(SessionReferences(state="unknown"), FOLDER, found, before=NOW)
    } == {RetentionReason.NO_SESSION}


def test_a_broken_chain_loses_nothing_more() -> None:
    snapshots = [Snapshot(f"{number:040d}") for number in range(4)]
    steps = [packs.SnapshotStep(n, one, snapshots[n - 1] if n else None) for n, one in enumerate(snapshots)]
    names = [f"trees/scratch/{step.part_name(0, 1)}" for step in steps]
    references = SessionReferences(state="living", snapshots={"scratch": [(3, snapshots[3])]})
    whole = reasons_by_name(
        judge_session_objects(references, FOLDER, [make_object(name) for name in names], before=NOW)
    )
    assert set(whole.values()) == {RetentionReason.FILES}
    broken = reasons_by_name(
        judge_session_objects(references, FOLDER, [make_object(name) for name in names if name != names[2]], before=NOW)
    )
    assert broken == {
        names[0]: RetentionReason.BROKEN,
        names[1]: RetentionReason.BROKEN,
        names[3]: RetentionReason.FILES,
    }
    pinned = replace(references, state="pinned", snapshots={"scratch": [(1, snapshots[1])]})
    assert [
        *reasons_by_name(
            judge_session_objects(pinned, FOLDER, [make_object(name) for name in names], before=NOW)
        ).values()
    ] == [
        RetentionReason.FILES,
        RetentionReason.FILES,
        RetentionReason.CUT_OFF,
        RetentionReason.CUT_OFF,
    ]


def test_parts_of_an_unfinished_pack_are_removed_once_it_is_written_again() -> None:
    snapshot = Snapshot("a" * 40)
    step = packs.SnapshotStep(0, snapshot, None)
    half = f"trees/scratch/{step.part_name(0, 3, 'e' * 16)}"
    again = [f"trees/scratch/{step.part_name(part, 2, 'f' * 16)}" for part in range(2)]
    references = SessionReferences(state="living", snapshots={"scratch": [(0, snapshot)]})
    found = reasons_by_name(
        judge_session_objects(references, FOLDER, [make_object(name) for name in (half, *again)], before=NOW)
    )
    assert found == {half: RetentionReason.CUT_OFF, again[0]: RetentionReason.FILES, again[1]: RetentionReason.FILES}
    (pack,) = packs.find_pack_chain([name.rpartition("/")[2] for name in (half, *again)], 0, snapshot)
    assert pack.names == [name.rpartition("/")[2] for name in again]
    assert reasons_by_name(judge_session_objects(references, FOLDER, [make_object(half)], before=NOW)) == {
        half: RetentionReason.BROKEN
    }


def test_a_base_is_retained_while_a_session_started_from_it() -> None:
    names = [f"00000000-{NO_BASE}-{short_id(Snapshot(tree))}.0-1.pack" for tree in ("a" * 40, "b" * 40)]
    found = [make_object(name) for name in (*names, "other")]

    def list_reasons(*, untold: bool) -> list[RetentionReason]:
        return [*reasons_by_name(judge_base_packs(["a" * 40], found, has_unknown_base=untold, before=NOW)).values()]

    assert list_reasons(untold=False) == [RetentionReason.BEGAN, RetentionReason.NOBODY_BEGAN, RetentionReason.UNKNOWN]
    assert list_reasons(untold=True) == [RetentionReason.BEGAN, RetentionReason.UNTOLD, RetentionReason.UNKNOWN]


def test_a_cache_is_retained_while_it_is_in_the_index() -> None:
    found = [make_object(name) for name in ("key.hash", "key.other")] + [make_object("new.hash", written_at=NOW)]
    assert [*reasons_by_name(judge_caches({"key.hash"}, found, before=NOW)).values()] == [
        RetentionReason.CACHED,
        RetentionReason.NOT_CACHED,
        RetentionReason.YOUNG,
    ]


def test_the_bytes_of_a_file_are_retained_while_the_log_refers_to_it() -> None:
    folder = "org/files"
    young = StoredObject(f"{folder}/file_4/0000", 10, NOW)
    names = ("file_1/0000", "file_1/0001", "file_2/0000", "file_3/0000", "file_3/other", "other/0000")
    found = [*(make_object(name, folder=folder) for name in names), young]
    verdicts = judge_uploaded_files({"file_1"}, {"file_2"}, folder, found, before=NOW)
    assert [verdict.reason for verdict in verdicts] == [
        *(
            RetentionReason.UPLOADED,
            RetentionReason.UPLOADED,
            RetentionReason.BY_NOTE,
            RetentionReason.NO_FILE,
            RetentionReason.UNKNOWN,
            RetentionReason.UNKNOWN,
            RetentionReason.YOUNG,
        )
    ]
