"""The names of packs in the object store: each says which snapshot it leads from, and to which. No git here."""

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from footplate.domain.snapshots import Snapshot

NAME: Final = re.compile(
    r"(?P<number>\d{8})-(?P<before>[0-9a-f]{16})-(?P<snapshot>[0-9a-f]{16})\.(?P<part>\d+)-(?P<parts>\d+)\.pack"
)
NONE: Final = "0" * 16
"""Of what a pack leads from that has all of its snapshot."""

Place = tuple[int, str]
"""A snapshot by its number and its short name."""


def short(snapshot: Snapshot) -> str:
    bundles = f" {snapshot.bundles}" if snapshot.bundles else ""
    return hashlib.sha256(f"{snapshot.tree} {snapshot.apart or ''}{bundles}".encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Leading:
    """What leads to some snapshots, as far as it is in one folder."""

    names: frozenset[str]
    ends: frozenset[str]
    """Where the ways back leave the folder: short names of snapshots that none of its packs leads to."""


def leading_to(names: Iterable[str], wanted: Collection[Place]) -> Leading:
    """Of two packs that lead to the same snapshot from different ones, both are followed: who has one may need it."""
    found = _by_place(names)
    needed: set[str] = set()
    ends: set[str] = set()
    seen: set[Place] = set()
    waiting = [*wanted]
    while waiting:
        place = waiting.pop()
        if place in seen:
            continue
        seen.add(place)
        if place not in found:
            ends.add(place[1])
        for before, pack in found.get(place, ()):
            needed.add(pack)
            waiting.append((place[0] - 1, before))
    return Leading(frozenset(needed), frozenset(ends))


def _by_place(names: Iterable[str]) -> Mapping[Place, list[tuple[str, str]]]:
    found: dict[Place, list[tuple[str, str]]] = {}
    for name in names:
        if (match := NAME.fullmatch(name)) is not None:
            place = (int(match["number"]), match["snapshot"])
            found.setdefault(place, []).append((match["before"], name))
    return found
