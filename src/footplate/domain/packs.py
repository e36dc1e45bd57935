"""Names of git packs in the object store. A name says which snapshot the pack builds on, and which one it produces."""

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from footplate.domain.snapshots import Snapshot

NAME: Final = re.compile(
    r"(?P<number>\d{8})-(?P<before>[0-9a-f]{16})-(?P<snapshot>[0-9a-f]{16})"
    r"\.(?P<part>\d+)-(?P<parts>\d+)(-(?P<digest>[0-9a-f]{16}))?\.pack"
)
NONE: Final = "0" * 16
"""The base of a pack that contains its whole snapshot."""

Place = tuple[int, str]
"""The number and the short id of a snapshot."""


def short(snapshot: Snapshot) -> str:
    bundles = f" {snapshot.bundles}" if snapshot.bundles else ""
    return hashlib.sha256(f"{snapshot.tree} {snapshot.apart or ''}{bundles}".encode()).hexdigest()[:16]


def number_of(name: str) -> int | None:
    """Return the number of the snapshot that a pack with this name produces."""
    return int(match["number"]) if (match := NAME.fullmatch(name)) is not None else None


@dataclass(frozen=True, slots=True)
class Leading:
    """The packs of one folder that are needed to restore some snapshots."""

    names: frozenset[str]
    ends: frozenset[str]
    """Short ids of the snapshots at which the chains leave the folder: no pack in the folder produces them."""


@dataclass(frozen=True, slots=True)
class Pack:
    before: str
    names: Sequence[str]
    """The names of its parts, in order."""


def whole(names: Iterable[str]) -> Mapping[Place, list[Pack]]:
    """Return the packs of which all parts are present, by the snapshot that they produce, in the order of the names."""
    found: dict[Place, dict[tuple[str, int, str | None], dict[int, str]]] = {}
    for name in names:
        if (match := NAME.fullmatch(name)) is not None:
            packs = found.setdefault((int(match["number"]), match["snapshot"]), {})
            packs.setdefault((match["before"], int(match["parts"]), match["digest"]), {})[int(match["part"])] = name
    return {
        place: [
            Pack(before, [parts[part] for part in sorted(parts)])
            for (before, count, _), parts in packs.items()
            if len(parts) == count
        ]
        for place, packs in found.items()
    }


def leading_to(names: Iterable[str], wanted: Collection[Place]) -> Leading:
    """Find the packs that lead to the wanted snapshots. If several packs produce the same snapshot, all are included,
    because a reader may be about to read any of them.
    """
    found = whole(names)
    needed: set[str] = set()
    ends: set[str] = set()
    seen: set[Place] = set()
    waiting = [*wanted]
    while waiting:
        place = waiting.pop()
        if place in seen:
            continue
        seen.add(place)
        if not found.get(place):
            ends.add(place[1])
        for pack in found.get(place, ()):
            needed.update(pack.names)
            waiting.append((place[0] - 1, pack.before))
    return Leading(frozenset(needed), frozenset(ends))
