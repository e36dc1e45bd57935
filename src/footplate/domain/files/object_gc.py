"""Decides which objects in the object store can be deleted, based on the references in the session logs.

An object is deleted only if it is certainly not needed. Each object gets one verdict with one reason to keep or delete
it. This module does no I/O.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Final, Literal

from footplate.domain.files.pack_names import NO_BASE, PACK_NAME, PackPosition, find_pack_chain, short_id
from footplate.domain.files.snapshots import Snapshot
from footplate.domain.ids import FILE
from footplate.domain.text.asciicast import RECORDINGS_FOLDER

_TREES_FOLDER: Final = "trees/"
_ARCHIVES_FOLDER: Final = "archive/"
_BODY_PREFIXES: Final = ("body_", "output_", f"{RECORDINGS_FOLDER}/")

SessionState = Literal["living", "pinned", "deleting", "unknown"]
"""The state of a session. `pinned`: it is deleted, but its forks still need a part of it."""


class RetentionReason(Enum):
    """Why an object is retained or deleted. `is_deletable`: the object is deleted for this reason."""

    FILES = ("a snapshot of a session's files needs it", False)
    NAMED = ("the log refers to it", False)
    UPLOADED = ("it is part of an uploaded file", False)
    BY_NOTE = ("its file is deleted, expired or still uploading; a worker removes it later", False)
    BEGAN = ("sessions of the project started from it", False)
    CACHED = ("it is a cache of the project", False)
    YOUNG = ("it was written recently, and its log entry may still be missing", False)
    BUSY = ("a turn of its session is running, queued or waiting for a decision", False)
    DELETING = ("its session is being deleted, which deletes it too unless a fork needs it", False)
    BROKEN = ("a pack of the same tree is missing, so nothing of this tree is deleted", False)
    UNTOLD = ("the base commit of a session of this project is not recorded", False)
    UNKNOWN = ("this version does not recognise its name", False)
    NO_SESSION = ("its session is not in the log", True)
    CUT_OFF = ("no snapshot in the log needs it; the turn that wrote it was interrupted", True)
    UNNAMED = ("nothing in the log refers to it; the process that wrote it was interrupted", True)
    NO_FILE = ("its file does not exist; the upload was interrupted, or the file was deleted", True)
    NOT_CACHED = ("no cache of the project consists of it", True)
    NOBODY_BEGAN = ("no existing session started from it", True)

    def __init__(self, text: str, goes: bool) -> None:  # noqa: FBT001 - an enumeration's value
        self.text = text
        self.is_deletable = goes


@dataclass(frozen=True, slots=True)
class StoredObject:
    key: str
    size: int
    written_at: datetime


@dataclass(frozen=True, slots=True)
class ObjectVerdict:
    stored: StoredObject
    reason: RetentionReason


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionReferences:
    """What the log says about a session: its state, and the objects that it refers to."""

    state: SessionState
    is_busy: bool = False
    is_fork: bool = False
    """Whether it is a fork. Its packs then build on packs of its parents."""
    snapshots: Mapping[str, Collection[tuple[int, Snapshot]]] = field(default_factory=dict)
    """By tree: the snapshots with their numbers."""
    bases: Collection[str] = ()
    """Ids of the git trees that its trees started from."""
    referenced_keys: Collection[str] = ()
    """Keys of objects that the log refers to."""


def judge_session_objects(
    references: SessionReferences, folder: str, stored: Sequence[StoredObject], *, before: datetime
) -> list[ObjectVerdict]:
    """Judge all objects below a session's folder. Objects written at or after `before` are too recent to delete."""
    packs: dict[str, list[StoredObject]] = {}
    verdicts: list[ObjectVerdict] = []
    for one in stored:
        inside = one.key.removeprefix(f"{folder}/")
        tree, _, name = inside.removeprefix(_TREES_FOLDER).partition("/")
        if inside.startswith(_TREES_FOLDER) and PACK_NAME.fullmatch(name):
            packs.setdefault(tree, []).append(one)
        else:
            verdicts.append(_judge(references, one, _judge_body(references, one.key, inside), before))
    for tree, of_tree in packs.items():
        reasons = _judge_packs(references, tree, of_tree)
        verdicts += [_judge(references, one, reasons[one.key], before) for one in of_tree]
    return verdicts


def judge_base_packs(
    base_trees: Collection[str], stored: Sequence[StoredObject], *, has_unknown_base: bool, before: datetime
) -> list[ObjectVerdict]:
    """Judge the base packs of a project. `base_trees`: ids of the git trees that sessions started from.
    `has_unknown_base`: at least one session has no recorded base.
    """
    needed = {short_id(Snapshot(tree)) for tree in base_trees}
    verdicts = []
    for one in stored:
        match = PACK_NAME.fullmatch(one.key.rpartition("/")[2])
        reason = (
            RetentionReason.UNKNOWN
            if match is None
            else RetentionReason.BEGAN
            if match["snapshot"] in needed
            else RetentionReason.NOBODY_BEGAN
        )
        if reason.is_deletable and has_unknown_base:
            reason = RetentionReason.UNTOLD
        verdicts.append(
            ObjectVerdict(one, RetentionReason.YOUNG if reason.is_deletable and one.written_at >= before else reason)
        )
    return verdicts


def judge_caches(names: Collection[str], stored: Sequence[StoredObject], *, before: datetime) -> list[ObjectVerdict]:
    """Judge all objects below a project's folder of caches. `names`: the names of the objects of existing caches."""
    verdicts = []
    for one in stored:
        reason = RetentionReason.CACHED if one.key.rpartition("/")[2] in names else RetentionReason.NOT_CACHED
        verdicts.append(
            ObjectVerdict(one, RetentionReason.YOUNG if reason.is_deletable and one.written_at >= before else reason)
        )
    return verdicts


def judge_uploaded_files(
    uploaded: Collection[str],
    deletion_recorded: Collection[str],
    folder: str,
    stored: Sequence[StoredObject],
    *,
    before: datetime,
) -> list[ObjectVerdict]:
    """Judge all objects below an organisation's folder of uploaded files.

    `uploaded`: ids of existing files. `deletion_recorded`: ids with a deletion record. An id with neither never gets
    either again.
    """
    verdicts = []
    for one in stored:
        file_id, _, part = one.key.removeprefix(f"{folder}/").partition("/")
        reason = (
            RetentionReason.UPLOADED
            if file_id in uploaded
            else RetentionReason.BY_NOTE
            if file_id in deletion_recorded
            else RetentionReason.NO_FILE
        )
        if not (file_id.startswith(f"{FILE}_") and part.isdigit()):
            reason = RetentionReason.UNKNOWN
        verdicts.append(
            ObjectVerdict(one, RetentionReason.YOUNG if reason.is_deletable and one.written_at >= before else reason)
        )
    return verdicts


def _judge(
    references: SessionReferences, stored: StoredObject, reason: RetentionReason, before: datetime
) -> ObjectVerdict:
    if references.state == "deleting":
        reason = RetentionReason.DELETING
    elif references.state == "unknown":
        reason = RetentionReason.NO_SESSION
    if reason.is_deletable and references.is_busy:
        reason = RetentionReason.BUSY
    if reason.is_deletable and stored.written_at >= before:
        reason = RetentionReason.YOUNG
    return ObjectVerdict(stored, reason)


def _judge_body(references: SessionReferences, key: str, inside: str) -> RetentionReason:
    if key in references.referenced_keys:
        return RetentionReason.NAMED
    return (
        RetentionReason.UNNAMED if inside.startswith((*_BODY_PREFIXES, _ARCHIVES_FOLDER)) else RetentionReason.UNKNOWN
    )


def _judge_packs(
    references: SessionReferences, tree: str, stored: Sequence[StoredObject]
) -> Mapping[str, RetentionReason]:
    names = {one.key.rpartition("/")[2]: one.key for one in stored}
    wanted: list[PackPosition] = [
        (number, short_id(snapshot)) for number, snapshot in references.snapshots.get(tree, ())
    ]
    chain = find_pack_chain(names, wanted)
    begins = {NO_BASE, *(short_id(Snapshot(base)) for base in references.bases)}
    # A fork's chain of packs continues in the folders of its parents.
    broken = not references.is_fork and not chain.ends <= begins
    other = RetentionReason.BROKEN if broken else RetentionReason.CUT_OFF
    return {key: RetentionReason.FILES if name in chain.names else other for name, key in names.items()}
