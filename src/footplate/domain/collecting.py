"""What of the object store is needed, and what may go, judged by what the log says. Nothing is looked at here.

What is not known for certain to be of no use stays, and each object has one reason for what becomes of it.
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
"""Of a session. `pinned`: it is deleted, and what its forks begin with is left."""


class Why(Enum):
    """A reason, and whether the object goes for it."""

    FILES = ("the files of a session in the log are made of it", False)
    NAMED = ("the log names it", False)
    UPLOADED = ("a file that was uploaded, to be named in messages and in the resources of sessions", False)
    BY_NOTE = ("its file is deleted or has expired, or is being uploaded: a worker removes it when that is due", False)
    BEGAN = ("sessions of the project began with it", False)
    YOUNG = ("written of late: whoever wrote it may not have told the log yet", False)
    BUSY = ("a turn of its session runs, is due or waits for an answer", False)
    DELETING = ("its session is being deleted: it goes with that, unless a fork needs it", False)
    BROKEN = ("a pack that it belongs with is missing: nothing of the tree goes until that is back", False)
    UNTOLD = ("a session of the project does not say what it began with", False)
    UNKNOWN = ("nothing that this version knows", False)
    NO_SESSION = ("its session is not in the log", True)
    CUT_OFF = ("no snapshot in the log needs it: the turn that wrote it was cut off", True)
    UNNAMED = ("nothing in the log names it: whoever wrote it was cut off", True)
    NO_FILE = ("its file is not in the log: the upload was cut off, or the file is deleted", True)
    NOBODY_BEGAN = ("no session that is left began with it", True)

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
    """What the log says of a session."""

    state: State
    busy: bool = False
    forked: bool = False
    """It begins in others, whose packs its own go on from."""
    snapshots: Mapping[str, Collection[tuple[int, Snapshot]]] = field(default_factory=dict)
    """By tree, each with its number."""
    bases: Collection[str] = ()
    """Git trees that its trees began with."""
    named: Collection[str] = ()
    """Keys."""


def of_session(told: Told, folder: str, stored: Sequence[Stored], *, before: datetime) -> list[Verdict]:
    """`stored`: all below the session's folder. `before`: what was written later is too young to go."""
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
    """`began`: git trees that sessions began with. `untold`: one of them does not say."""
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
    """`stored`: all below the organisation's folder of files. Ids of those that there are, and of those that there is a
    note for; one that has neither never has either again.
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
    # A fork's way back goes on in the folders of others.
    broken = not told.forked and not leading.ends <= begins
    other = Why.BROKEN if broken else Why.CUT_OFF
    return {key: Why.FILES if name in leading.names else other for name, key in names.items()}
