"""Names of git packs in the object store. Each snapshot of a session's files is stored as a pack. The pack's name
contains the id of the snapshot that it builds on and the id of the new snapshot. In the name of a merged pack, the
number of steps between them follows the number of the snapshot.
"""

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from footplate.domain.files.snapshots import Snapshot

PACK_NAME: Final = re.compile(
    r"(?P<number>\d{8})-((?P<steps>\d{8})-)?(?P<before>[0-9a-f]{16})-(?P<snapshot>[0-9a-f]{16})"
    r"\.(?P<part>\d+)-(?P<parts>\d+)(-(?P<digest>[0-9a-f]{16}))?\.pack"
)
NO_BASE: Final = "0" * 16
"""The base of a pack that contains its whole snapshot."""

PackPosition = tuple[int, str]
"""The number and the short id of a snapshot."""


def short_id(snapshot: Snapshot) -> str:
    bundles = f" {snapshot.bundles}" if snapshot.bundles else ""
    return hashlib.sha256(f"{snapshot.tree} {snapshot.sidecar or ''}{bundles}".encode()).hexdigest()[:16]


def snapshot_number(name: str) -> int | None:
    """Return the number of the snapshot that a pack with this name produces."""
    return int(match["number"]) if (match := PACK_NAME.fullmatch(name)) is not None else None


@dataclass(frozen=True, slots=True)
class PackChain:
    """The packs of one folder that are needed to restore some snapshots."""

    names: frozenset[str]
    ends: frozenset[str]
    """Short ids of the snapshots at which the chains leave the folder: no pack in the folder produces them."""


@dataclass(frozen=True, slots=True)
class Pack:
    base: PackPosition
    steps: int
    """How many steps of the session's history it covers. More than one: it is a merged pack."""
    names: Sequence[str]
    """The names of its parts, in order."""


def complete_packs(names: Iterable[str]) -> Mapping[PackPosition, list[Pack]]:
    """Return the packs of which all parts are present, by the snapshot that they produce, in the order of the names."""
    found: dict[PackPosition, dict[tuple[str, int, int, str | None], dict[int, str]]] = {}
    for name in names:
        if (match := PACK_NAME.fullmatch(name)) is not None:
            packs = found.setdefault((int(match["number"]), match["snapshot"]), {})
            pack = (match["before"], int(match["steps"] or 1), int(match["parts"]), match["digest"])
            packs.setdefault(pack, {})[int(match["part"])] = name
    return {
        place: [
            Pack((place[0] - steps, before), steps, [parts[part] for part in sorted(parts)])
            for (before, steps, count, _), parts in packs.items()
            if len(parts) == count
        ]
        for place, packs in found.items()
    }


def find_pack_chain(names: Iterable[str], wanted: Collection[PackPosition]) -> PackChain:
    """Find the packs that lead to the wanted snapshots. If several packs produce the same snapshot, all are included,
    because a reader may be about to read any of them.
    """
    packs = complete_packs(names)
    needed: set[str] = set()
    ends: set[str] = set()
    seen: set[PackPosition] = set()
    queue = [*wanted]
    while queue:
        position = queue.pop()
        if position in seen:
            continue
        seen.add(position)
        if not packs.get(position):
            ends.add(position[1])
        for pack in packs.get(position, ()):
            needed.update(pack.names)
            queue.append(pack.base)
    return PackChain(frozenset(needed), frozenset(ends))
