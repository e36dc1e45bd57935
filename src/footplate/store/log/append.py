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
from footplate.store.database import SQL, Connection
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
        SQL["append_turn"],
        claim.session_id,
        claim.organisation,
        claim.epoch,
        claim.turn_id,
        [event.id for event in batch.events],
        [event.type for event in batch.events],
        [None if ref else text for (text, _), ref in zip(fitted_events, refs, strict=True)],
        refs,
        [entry.kind for entry in batch.entries],
        [text for text, _ in fitted_entries],
        [key for _, key in fitted_entries],
        [key for _, key in fitted_events],
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
        usage.requests,
        usage.cost_microusd,
        [snapshot.tree for snapshot in batch.files],
        [found.is_turn_start for found in batch.files],
        [found.stored.number for found in batch.files],
        [found.stored.snapshot.tree for found in batch.files],
        [found.stored.snapshot.sidecar or "" for found in batch.files],
        [found.stored.base or "" for found in batch.files],
        [orjson.dumps(found.stored.omitted).decode() for found in batch.files],
        [orjson.dumps(dict(found.stored.snapshot.commits)).decode() for found in batch.files],
        [found.stored.snapshot.bundles or "" for found in batch.files],
        _audit_decisions_json(claim, batch.events),
        None if batch.shell is None else orjson.dumps(batch.shell.to_json()).decode(),
    )
    if row is None:
        raise Fenced(f"Another worker has claimed session {claim.session_id}.")
    return positions_of_appended(claim, batch.events, row)


def positions_of_appended(claim: Claim, new_events: Sequence[Event], row: Row) -> Sequence[Position]:
    """Returns the positions of events that a statement appended. `row` has the position of the last one."""
    first = row["seq"] - len(new_events) + 1
    now = row["created_at"]
    return [Position(first + n, event, now, now, claim.turn_id) for n, event in enumerate(new_events)]


def _audit_decisions_json(claim: Claim, new_events: Sequence[Event]) -> str:
    """Returns the gate's decisions on the calls among the events, as JSON for the audit trail."""
    names = ("id", "event", "principal", "outcome", "tool", "layer", "input_hash", "content", "content_hash")
    decisions = audit.build_decision_entries(new_events, principal=claim.author.id if claim.author else None)
    return orjson.dumps([{name: getattr(decision, name) for name in names} for decision in decisions]).decode()
