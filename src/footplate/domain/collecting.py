"""Decides which objects of the object store are still needed and which can be deleted, from what the log refers to.

An object is deleted only if it is certainly not needed. Every object gets exactly one reason. This module does no I/O.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Final, Literal

from footplate.domain.ids import FILE
from footplate.domain.packs import NAME, NONE, Place, leading_to, short
from footplate.domain.snapshots import Snapshot

_TREES: Final = "trees/"
_ARCHIVES: Final = "archive/"
_BODIES: Final = ("body_", "output_")

State = Literal["living", "pinned", "deleting", "unknown"]
"""The state of a session. `pinned`: it is deleted, but its forks still need a part of it."""


class Why(Enum):
    """Why an object is retained or deleted. `is_deletable`: the object is deleted for this reason."""

    FILES = ("a snapshot of a session's files needs it", False)
    NAMED = ("the log refers to it", False)
    UPLOADED = ("it is part of an uploaded file", False)
    BY_NOTE = ("its file is deleted, expired or still uploading; a worker removes it when it is due", False)
    BEGAN = ("sessions of the project started from it", False)
    YOUNG = ("it was written recently, and its log entry may still be missing", False)
    BUSY = ("a turn of its session is running, queued or waiting for a decision", False)
    DELETING = ("its session is being deleted, which deletes it too unless a fork needs it", False)
    BROKEN = ("a pack of the same tree is missing, so nothing of this tree is deleted", False)
    UNTOLD = ("a session of the project has no recorded base", False)
    UNKNOWN = ("this version does not recognise its name", False)
    NO_SESSION = ("its session is not in the log", True)
    CUT_OFF = ("no snapshot in the log needs it; the turn that wrote it was interrupted", True)
    UNNAMED = ("nothing in the log refers to it; the process that wrote it was interrupted", True)
    NO_FILE = ("its file does not exist; the upload was interrupted, or the file was deleted", True)
    NOBODY_BEGAN = ("no existing session started from it", True)

    def __init__(self, text: str, goes: bool) -> None:  # noqa: FBT001 - an enumeration's value
        self.text = text
        self.goes = goes


@dataclass(frozen=True, slots=True)
class Stored:
    key: str
    size: int
    written_at: datetime


@dataclass(frozen=True, slots=True)
class Verdict:
    stored: Stored
    why: Why


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the log says about a session: its state, and the objects that it refers to."""

    state: State
    busy: bool = False
    forked: bool = False
    """Whether it is a fork. Its packs then build on packs of its parents."""
    snapshots: Mapping[str, Collection[tuple[int, Snapshot]]] = field(default_factory=dict)
    """By tree: the snapshots with their numbers."""
    bases: Collection[str] = ()
    """Ids of the git trees that its trees started from."""
    named: Collection[str] = ()
    """Keys of objects that the log refers to."""


def of_session(told: Told, folder: str, stored: Sequence[Stored], *, before: datetime) -> list[Verdict]:
    """Judge all objects below a session's folder. Objects written at or after `before` are too recent to delete."""
    packs: dict[str, list[Stored]] = {}
    verdicts: list[Verdict] = []
    for one in stored:
        inside = one.key.removeprefix(f"{folder}/")
        tree, _, name = inside.removeprefix(_TREES).partition("/")
        if inside.startswith(_TREES) and NAME.fullmatch(name):
            packs.setdefault(tree, []).append(one)
        else:
            verdicts.append(_judged(told, one, _of_body(told, one.key, inside), before))
    for tree, of_tree in packs.items():
        useful = _of_packs(told, tree, of_tree)
        verdicts += [_judged(told, one, useful[one.key], before) for one in of_tree]
    return verdicts


def of_project(began: Collection[str], stored: Sequence[Stored], *, untold: bool, before: datetime) -> list[Verdict]:
    """Judge the base packs of a project. `base_trees`: ids of the git trees that sessions started from.
    `has_unknown_base`: at least one session has no recorded base.
    """
    needed = {short(Snapshot(tree)) for tree in began}
    verdicts = []
    for one in stored:
        match = NAME.fullmatch(one.key.rpartition("/")[2])
        why = Why.UNKNOWN if match is None else Why.BEGAN if match["snapshot"] in needed else Why.NOBODY_BEGAN
        if why.goes and untold:
            why = Why.UNTOLD
        verdicts.append(Verdict(one, Why.YOUNG if why.goes and one.written_at >= before else why))
    return verdicts


def of_files(
    uploaded: Collection[str], noted: Collection[str], folder: str, stored: Sequence[Stored], *, before: datetime
) -> list[Verdict]:
    """Judge all objects below an organisation's folder of uploaded files.

    `uploaded`: ids of existing files. `deletion_recorded`: ids with a deletion record. An id with neither never gets
    either again.
    """
    verdicts = []
    for one in stored:
        file_id, _, part = one.key.removeprefix(f"{folder}/").partition("/")
        why = Why.UPLOADED if file_id in uploaded else Why.BY_NOTE if file_id in noted else Why.NO_FILE
        if not (file_id.startswith(f"{FILE}_") and part.isdigit()):
            why = Why.UNKNOWN
        verdicts.append(Verdict(one, Why.YOUNG if why.goes and one.written_at >= before else why))
    return verdicts


def _judged(told: Told, stored: Stored, why: Why, before: datetime) -> Verdict:
    if told.state == "deleting":
        why = Why.DELETING
    elif told.state == "unknown":
        why = Why.NO_SESSION
    if why.goes and told.busy:
        why = Why.BUSY
    if why.goes and stored.written_at >= before:
        why = Why.YOUNG
    return Verdict(stored, why)


def _of_body(told: Told, key: str, inside: str) -> Why:
    if key in told.named:
        return Why.NAMED
    return Why.UNNAMED if inside.startswith((*_BODIES, _ARCHIVES)) else Why.UNKNOWN


def _of_packs(told: Told, tree: str, stored: Sequence[Stored]) -> Mapping[str, Why]:
    names = {one.key.rpartition("/")[2]: one.key for one in stored}
    wanted: list[Place] = [(number, short(snapshot)) for number, snapshot in told.snapshots.get(tree, ())]
    leading = leading_to(names, wanted)
    begins = {NONE, *(short(Snapshot(base)) for base in told.bases)}
    # A fork's chain of packs continues in the folders of its parents.
    broken = not told.forked and not leading.ends <= begins
    other = Why.BROKEN if broken else Why.CUT_OFF
    return {key: Why.FILES if name in leading.names else other for name, key in names.items()}
