"""`/v1/sessions/import` and `/v1/sessions/{id}/transcript`: import and export conversations in the harness's own
transcript format, for example that of Claude Code.
"""

import asyncio
from typing import Final

from fastapi import Request
from starlette.responses import Response, StreamingResponse

from footplate.api.auth import Caller
from footplate.api.openapi import describe_request
from footplate.api.requests.idempotency import ChangeResult, execute_change
from footplate.api.requests.json_lines_spool import LineSpool
from footplate.api.requests.parsing import get_reservation, read_query, validate_json
from footplate.api.routes.session.sessions import load_agent_snapshot
from footplate.api.routing import create_router
from footplate.api.service_container import ApiServices, get_services
from footplate.api.wire import response_models
from footplate.api.wire.agent_and_environment_queries import NoParameters
from footplate.api.wire.session import sessions, transcripts
from footplate.api.wire.session.transcripts import JSON_LINES, SessionImport
from footplate.api.wire.visibility import parse_audience
from footplate.domain.errors import Conflict, InvalidRequest
from footplate.domain.json import JsonObject
from footplate.domain.ports.api import TranscriptImport, UnitOfWork
from footplate.domain.ports.transcript_exchange import Transcripts
from footplate.domain.sessions.turns import SessionStatus

router = create_router("/v1/sessions", "sessions")

_IMPORT_BODY: Final = describe_request(
    body=SessionImport,
    media_type=JSON_LINES,
    description="JSON lines: first the object described here, then each line of the transcript.",
)


@router.post("/import", response_model=response_models.Session, openapi_extra=_IMPORT_BODY)
async def import_session(request: Request, principal: Caller) -> Response:
    """Creates a session from an existing conversation. Importing the same transcript again returns the same session."""
    services = get_services(request)
    with await LineSpool.receive(request) as spool:
        get_reservation(request).add(len(spool.first_line))
        body = await validate_json(request, SessionImport, spool.first_line)
        services.named_roots.check_context(principal.organisation, body.context or {})
        audience = parse_audience(body.visibility, body.team_id)
        agent = await load_agent_snapshot(services, principal, body.agent)
        await services.reads.environment(principal, body.environment_id)
        transcript_format = await _find_transcript_format(
            services, agent, "agent: the harness {!r} does not support transcript import"
        )
        lines = lambda: (transcripts.parse_transcript_line(number, value) for number, value in spool.lines())  # noqa: E731
        origin, pieces = await asyncio.to_thread(transcript_format.parse_import, lines)

        async def work(unit: UnitOfWork) -> ChangeResult:
            session, accepted = await unit.import_session(
                principal,
                TranscriptImport(digest=spool.lines_digest, origin=origin, pieces=pieces),
                agent=agent,
                environment_id=body.environment_id,
                title=body.title,
                metadata=body.metadata,
                context=body.context or {},
                audience=audience,
            )
            return sessions.serialize_session(session), accepted

        return await execute_change(request, principal, spool.body_digest, work, audit_action="session.import")


@router.get(
    "/{session_id}/transcript",
    response_class=Response,
    responses={200: {"description": "JSON lines. The last line has the line count.", "content": {JSON_LINES: {}}}},
)
async def read_transcript(request: Request, session_id: str, principal: Caller) -> Response:
    """Returns the conversation as a transcript of the harness, such as Claude Code, which can continue it elsewhere."""
    read_query(request, NoParameters)
    services = get_services(request)
    session = await services.reads.session(principal, session_id)
    transcript_format = await _find_transcript_format(
        services, session.agent, "The harness {!r} does not support transcript export"
    )
    if session.status is not SessionStatus.IDLE:
        raise Conflict(
            f"Session {session_id!r} is {session.status.value}, so its conversation is not complete.",
            help_text="Wait for session.status_idle, or send a user.interrupt event first.",
        )
    export = transcript_format.start_export(session.id)
    conversation = services.reads.conversation(principal, session.id)
    return StreamingResponse(transcripts.export_lines(export, conversation), media_type=JSON_LINES)


async def _find_transcript_format(services: ApiServices, agent: JsonObject, error_template: str) -> Transcripts:
    harness = str(agent.get("harness") or services.default_harness)
    transcript_format = await asyncio.to_thread(services.transcripts, harness)  # the first call loads the harness
    if transcript_format is None:
        raise InvalidRequest(
            f"{error_template.format(harness)}.",
            field="agent",
            help_text="Only Claude Code has transcripts: use an agent with the harness 'claude'.",
        )
    return transcript_format
