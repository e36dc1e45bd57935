"""Compares the effects of every POST, from the database and the model's record, with the responses to the callers."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import asyncpg

from bench.prove.figure import require
from bench.support.cluster import Cluster
from bench.support.retries.api_kills import Kill
from bench.support.retries.sdk_posts import SCRIPT, Kind, Posted
from footplate.stack.orphan_processes import wait_until

_FOUND: Final[Mapping[Kind, str]] = {
    "send": "select event_id as id, body #>> '{content,0,text}' as mark from events "
    "where type = 'user.message' and ref_seq is null",
    "session": "select id, title as mark from sessions",
    "agent": "select id, name as mark from agents",
}
_PROCESSED: Final = """
select e.event_id, e.body #>> '{content,0,text}' as text,
    (select count(*) from events t where t.session_id = e.session_id and t.ref_seq = e.seq) as taken,
    (select count(*) from turns t where t.session_id = e.session_id and t.input_event_id = e.event_id) as turns,
    (select count(*) from turns t where t.session_id = e.session_id and t.input_event_id = e.event_id
        and t.status = 'completed' and t.attempt = 1) as completed
from events e where e.type = 'user.message' and e.ref_seq is null
"""
_CREATED: Final = """
select event_id as id, created_at from events where type = 'user.message' and ref_seq is null
union all select id, created_at from sessions union all select id, created_at from agents
"""
_PATIENCE: Final = 90.0

CreatedObjects = Mapping[Kind, Sequence[tuple[str, str]]]
"""Ids and marks from the database."""


async def check_outcomes(cluster: Cluster, posted: Sequence[Posted]) -> tuple[list[str], int]:
    """Waits until every turn has ended, then returns the faults and the number of processed messages."""
    connection = await asyncpg.connect(cluster.settings.database_url)
    try:

        async def all_processed() -> bool:
            rows = await connection.fetch(_PROCESSED)
            return all(row["completed"] for row in rows)

        settled = await wait_until(all_processed, _PATIENCE)
        require(holds=settled, otherwise=f"a message is not processed after {_PATIENCE:.0f} s")
        found: CreatedObjects = {
            kind: [(row["id"], row["mark"]) for row in await connection.fetch(query)] for kind, query in _FOUND.items()
        }
        processed = await connection.fetch(_PROCESSED)
    finally:
        await connection.close()
    received = _count_received_texts(await cluster.model.requests(SCRIPT))
    written = Counter(row["text"] for row in processed)
    sessions = Counter(mark for _, mark in found["session"] if mark is not None)
    faults = [
        *find_broken_promises(posted, found),
        *(
            f"session {mark!r} was created {count} times, its message is in the log {written[mark]} times"
            for mark, count in sessions.items()
            if written[mark] != count
        ),
        *(
            f"{row['event_id']} was claimed {row['taken']} times, in {row['turns']} turns"
            for row in processed
            if (row["taken"], row["turns"]) != (1, 1)
        ),
        *(
            f"the model received {text!r} {received[text]} times, the log has it {written[text]} times"
            for text in received.keys() | written.keys()
            if received[text] != written[text]
        ),
    ]
    return faults, len(processed)


async def count_kill_states(cluster: Cluster, kills: Sequence[Kill]) -> Counter[str]:
    """Counts the states in which the kills hit their POSTs."""
    connection = await asyncpg.connect(cluster.settings.database_url)
    try:
        made = {row["id"]: row["created_at"].timestamp() for row in await connection.fetch(_CREATED)}
    finally:
        await connection.close()
    return Counter(_state(kill.at, post, made) for kill in kills for post in kill.posted)


def _state(killed: float, post: Posted, made: Mapping[str, float]) -> str:
    """Returns the state of a POST at the kill. A row's time is its transaction's start, so a retry's is later."""
    if post.id is None:
        return "given up"
    if post.retries == 0:
        return "already responded"
    return "committed without a response" if made[post.id] < killed else "not committed"


def find_broken_promises(posted: Sequence[Posted], found: CreatedObjects) -> Iterable[str]:
    """Yields a fault for each POST that did not create exactly one object with the id in its response.

    A POST that the SDK gave up on may have created at most one.
    """
    for kind, things in found.items():
        calls = [call for call in posted if call.kind == kind]
        ids = {thing for thing, _ in things}
        made = Counter(mark for _, mark in things)
        returned_ids = Counter(call.id for call in calls if call.id is not None)
        yield from (f"{kind} {one} was acknowledged and does not exist" for one in returned_ids if one not in ids)
        yield from (f"{kind} {one} was returned to {count} callers" for one, count in returned_ids.items() if count > 1)
        for mark, count in Counter(call.mark for call in calls).items():
            acknowledged = sum(call.mark == mark and call.id is not None for call in calls)
            if not acknowledged <= made[mark] <= count:  # fewer: lost; more: done twice
                yield f"{kind} {mark!r}: sent {count} times, acknowledged {acknowledged}, created {made[mark]} times"


def _count_received_texts(requests: Iterable[Mapping[str, object]]) -> Counter[str]:
    """Counts the last user message of each model request."""
    return Counter(_last_user_text(request["body"]) for request in requests)


def _last_user_text(body: object) -> str:
    assert isinstance(body, dict)
    content = [message for message in body["messages"] if message["role"] == "user"][-1]["content"]
    return (
        content
        if isinstance(content, str)
        else str([block for block in content if block["type"] == "text"][-1]["text"])
    )
