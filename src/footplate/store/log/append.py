"""Appends a worker's events and conversation entries to the session log in one SQL statement.

Each claim of a session by a worker has a number, the epoch. The statement fails if another worker has claimed the
session since then.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from footplate.domain import audit
from footplate.domain.errors import Fenced
from footplate.domain.files.snapshots import TreeSnapshot
from footplate.domain.ports.engine import Claim
from footplate.domain.ports.harness import Entry
from footplate.domain.sessions.events import Event, Position, Usage
from footplate.domain.sessions.shell_state import ShellState
from footplate.store.database import Connection, bind
from footplate.store.object_store import Objects
from footplate.store.row_mapping import Row

_NO_USAGE = Usage()


@dataclass(frozen=True, slots=True)
class AppendBatch:
    events: Sequence[Event]
    refs: Sequence[int] = ()
    """For events that were in the log before (queued inputs): the position of the first occurrence, per event."""
    entries: Sequence[Entry] = ()
    usage: Usage = _NO_USAGE
    files: Sequence[TreeSnapshot] = ()
    """Snapshots of the changed files. They are already in the object store."""
    shell: ShellState | None = None
    """The new state of the persistent shell."""


@dataclass(frozen=True, slots=True)
class _SnapshotRow:
    """A row of `snapshots`, without what all rows of an append share."""

    tree: str
    begins: bool
    number: int
    files: str
    apart: str | None
    base: str | None
    left_out: Sequence[str]
    commits: dict[str, str]
    bundles: str | None

    @classmethod
    def of(cls, found: TreeSnapshot) -> "_SnapshotRow":
        stored = found.stored
        return cls(
            tree=found.tree,
            begins=found.is_turn_start,
            number=stored.number,
            files=stored.snapshot.tree,
            apart=stored.snapshot.sidecar or None,
            base=stored.base or None,
            left_out=stored.omitted,
            commits=dict(stored.snapshot.commits),
            bundles=stored.snapshot.bundles or None,
        )


async def append_batch(
    connection: Connection, objects: Objects, claim: Claim, batch: AppendBatch
) -> Sequence[Position]:
    fitted_events = [await objects.fit_body(claim.organisation, claim.session_id, event.body) for event in batch.events]
    fitted_entries = [
        await objects.fit_body(claim.organisation, claim.session_id, entry.body) for entry in batch.entries
    ]
    refs = list(batch.refs) or [0] * len(batch.events)
    usage = batch.usage
    row = await connection.fetchrow(
        *bind(
            "append_turn",
            session_id=claim.session_id,
            organisation=claim.organisation,
            epoch=claim.epoch,
            turn_id=claim.turn_id,
            event_ids=[event.id for event in batch.events],
            event_types=[event.type for event in batch.events],
            event_bodies=[None if ref else text for (text, _), ref in zip(fitted_events, refs, strict=True)],
            event_refs=refs,
            event_object_keys=[key for _, key in fitted_events],
            entry_kinds=[entry.kind for entry in batch.entries],
            entry_bodies=[text for text, _ in fitted_entries],
            entry_object_keys=[key for _, key in fitted_entries],
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_read=usage.cache_read_tokens,
            cache_write=usage.cache_write_tokens,
            requests=usage.requests,
            cost_microusd=usage.cost_microusd,
            snapshots=_rows_json([_SnapshotRow.of(snapshot) for snapshot in batch.files]),
            decisions=_rows_json(_audit_decisions(claim, batch.events)),
            shell_state=None if batch.shell is None else orjson.dumps(batch.shell.to_json()).decode(),
        )
    )
    if row is None:
        raise Fenced(f"Another worker has claimed session {claim.session_id}.")
    return positions_of_appended(claim, batch.events, row)


def positions_of_appended(claim: Claim, new_events: Sequence[Event], row: Row) -> Sequence[Position]:
    """Returns the positions of events that a statement appended. `row` has the position of the last one."""
    first = row["seq"] - len(new_events) + 1
    now = row["created_at"]
    return [Position(first + n, event, now, now, claim.turn_id) for n, event in enumerate(new_events)]


def _audit_decisions(claim: Claim, new_events: Sequence[Event]) -> list[dict[str, object]]:
    """Returns the gate's decisions on the calls among the events, as rows of the audit trail."""
    names = ("id", "event", "principal", "outcome", "tool", "layer", "input_hash", "content", "content_hash")
    decisions = audit.build_decision_entries(new_events, principal=claim.author.id if claim.author else None)
    return [{name: getattr(decision, name) for name in names} for decision in decisions]


def _rows_json(rows: Sequence[object]) -> str:
    return orjson.dumps(rows).decode()
