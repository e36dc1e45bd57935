"""The names of packs in the object store: each says which snapshot it leads from, and to which. No git here."""

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
"""Of what a pack leads from that has all of its snapshot."""

Place = tuple[int, str]
"""A snapshot by its number and its short name."""


def short(snapshot: Snapshot) -> str:
    bundles = f" {snapshot.bundles}" if snapshot.bundles else ""
    return hashlib.sha256(f"{snapshot.tree} {snapshot.apart or ''}{bundles}".encode()).hexdigest()[:16]


def number_of(name: str) -> int | None:
    """Of the snapshot that a pack of this name leads to."""
    return int(match["number"]) if (match := NAME.fullmatch(name)) is not None else None


@dataclass(frozen=True, slots=True)
class Leading:
    """What leads to some snapshots, as far as it is in one folder."""

    names: frozenset[str]
    ends: frozenset[str]
    """Where the ways back leave the folder: short names of snapshots that none of its packs leads to."""


@dataclass(frozen=True, slots=True)
class Pack:
    before: str
    names: Sequence[str]
    """Of its parts, in their order."""


def whole(names: Iterable[str]) -> Mapping[Place, list[Pack]]:
    """The packs that have all of their parts, by what they lead to, in the order of the names."""
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
    """Of packs that lead to the same snapshot all are followed: who reads may be about to read any of them."""
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
