"""`/v1/sessions/import` and `/v1/sessions/{id}/transcript`: import and export of conversations in a harness's own
format.
"""

import asyncio
from typing import Final

from fastapi import Request
from starlette.responses import Response, StreamingResponse

from footplate.api.auth import Caller
from footplate.api.changes import Changed, change
from footplate.api.openapi import describe_request
from footplate.api.requests import read_query, reservation_of, validate_json
from footplate.api.routes.sessions import snapshot_of
from footplate.api.routing import router_of
from footplate.api.services import ApiServices, get_services
from footplate.api.spool import Spool
from footplate.api.wire import answers, sessions, transcripts
from footplate.api.wire.lists import NoParameters
from footplate.api.wire.transcripts import LINES, SessionImport
from footplate.domain.errors import Conflict, InvalidRequest
from footplate.domain.json import JsonObject
from footplate.domain.services import Arrival, Unit
from footplate.domain.transcripts import Transcripts
from footplate.domain.turns import SessionStatus

router = router_of("/v1/sessions", "sessions")

_TAKES: Final = describe_request(
    body=SessionImport,
    media_type=LINES,
    description="JSON lines: first the object described here, then each line of the transcript.",
)


@router.post("/import", response_model=answers.Session, openapi_extra=_TAKES)
async def import_session(request: Request, principal: Caller) -> Response:
    """Creates a session from an existing conversation. Importing the same transcript again returns the same session."""
    services = get_services(request)
    with await Spool.receive(request) as spool:
        reservation_of(request).add(len(spool.first_line))
        body = await validate_json(request, SessionImport, spool.first_line)
        services.named_roots.check_context(principal.organisation, body.context or {})
        agent = await snapshot_of(services, principal, body.agent)
        await services.reads.environment(principal, body.environment_id)
        transcript_format = await _program_of(services, agent, "agent: the harness {!r} does not support transcript import")
        lines = lambda: (transcripts.line_of(number, value) for number, value in spool.lines())  # noqa: E731
        origin, pieces = await asyncio.to_thread(transcript_format.arriving, lines)

        async def work(unit: Unit) -> Changed:
            session, accepted = await unit.import_session(
                principal,
                Arrival(digest=spool.lines_digest, origin=origin, pieces=pieces),
                agent=agent,
                environment_id=body.environment_id,
                title=body.title,
                metadata=body.metadata,
                context=body.context or {},
            )
            return sessions.answer(session), accepted

        return await change(request, principal, spool.body_digest, work, audit_action="session.import")


@router.get(
    "/{session_id}/transcript",
    response_class=Response,
    responses={200: {"description": "JSON lines. The last one has the number of lines.", "content": {LINES: {}}}},
)
async def read_transcript(request: Request, session_id: str, principal: Caller) -> Response:
    """Returns the conversation in the format of the harness's own program, which can continue it elsewhere."""
    read_query(request, NoParameters)
    services = get_services(request)
    session = await services.reads.session(principal, session_id)
    transcript_format = await _program_of(services, session.agent, "The harness {!r} does not support transcript export")
    if session.status is not SessionStatus.IDLE:
        raise Conflict(
            f"Session {session_id!r} is {session.status.value}: its conversation is not finished.",
            help_text="Wait for session.status_idle, or send a user.interrupt event first.",
        )
    export = transcript_format.leaving(session.id)
    conversation = services.reads.conversation(principal, session.id)
    return StreamingResponse(transcripts.written(export, conversation), media_type=LINES)


async def _program_of(services: ApiServices, agent: JsonObject, error_template: str) -> Transcripts:
    harness = str(agent.get("harness") or services.default_harness)
    transcript_format = await asyncio.to_thread(services.transcripts, harness)  # the first call loads the harness
    if transcript_format is None:
        raise InvalidRequest(
            f"{error_template.format(harness)}.",
            field="agent",
            help_text="Only Claude Code has transcripts: use an agent with the harness 'claude'.",
        )
    return transcript_format
