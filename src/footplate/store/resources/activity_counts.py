"""Counts the sessions of all organisations by activity, for the operator's metrics."""

from footplate.domain.sessions.activity import COUNTED_STATES
from footplate.domain.sessions.turns import ActivityState
from footplate.store.database import Database
from footplate.store.row_mapping import load_activity


async def count_activities(database: Database) -> dict[ActivityState, int]:
    counts = dict.fromkeys(COUNTED_STATES, 0)
    for row in await database.fetch("activity_counts"):
        counts[load_activity(row).state] += row["sessions"]
    return counts
