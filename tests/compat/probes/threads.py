"""Threads of a session: the primary one."""

import anthropic
from bench.prove.sdk.door import Door, types_of
from tests.compat.checks import equal
from tests.compat.registry import different, supported

_PRIMARY = "The primary thread; there are no others, because agents have no subagents here yet."


@different("sessions.threads.list", note=_PRIMARY)
@supported("sessions.threads.list", "session_id", "limit", "page", "statuses")
@supported("sessions.threads.retrieve")
@supported("sessions.threads.retrieve", "session_id", "thread_id")
@different("sessions.threads.archive", note="Refused with 400: the primary thread is archived with its session.")
@supported("sessions.threads.archive", "session_id", "thread_id")
async def the_primary_thread_is_the_session(door: Door) -> None:
    session = await door.session()
    (thread,) = await door.every("sessions.threads.list", session.id, limit=1)
    equal((thread.type, thread.session_id, thread.parent_thread_id), ("session_thread", session.id, None))
    equal((thread.id.split("_")[0], thread.status, thread.archived_at), ("sthr", "idle", None))
    equal((thread.agent.id, thread.agent.version), (session.agent.id, session.agent.version))
    found = await door.call("sessions.threads.retrieve", thread.id, session_id=session.id)
    equal((found.id, found.created_at), (thread.id, session.created_at))
    equal(await door.every("sessions.threads.list", session.id, statuses=["running", "terminated"]), [])
    refusal = anthropic.BadRequestError
    await door.refused(refusal, "sessions.threads.list", session.id, page="x", field="page")
    await door.refused(refusal, "sessions.threads.archive", thread.id, session_id=session.id, field="thread_id")
    await door.refused(anthropic.NotFoundError, "sessions.threads.list", "sesn_none")
    for method in ("retrieve", "archive", "events.list", "events.stream"):
        await door.refused(anthropic.NotFoundError, f"sessions.threads.{method}", "sthr_none", session_id=session.id)


@supported("sessions.threads.events.list")
@supported("sessions.threads.events.list", "session_id", "thread_id", "limit", "page")
@supported("sessions.threads.events.stream")
@supported("sessions.threads.events.stream", "session_id", "thread_id", "event_deltas")
async def its_events_are_those_of_the_session(door: Door) -> None:
    session = await door.session()
    (thread,) = await door.every("sessions.threads.list", session.id)
    received = await door.watch(
        thread.id,
        lambda: door.say(session.id, "probe-hello"),
        method="sessions.threads.events.stream",
        session_id=session.id,
        event_deltas=["agent.message"],
    )
    equal("event_delta" in types_of(received), True)
    listed = await door.every("sessions.threads.events.list", thread.id, session_id=session.id, limit=2)
    equal([event.id for event in listed], [event.id for event in await door.every("sessions.events.list", session.id)])
