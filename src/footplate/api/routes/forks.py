"""`/v1/sessions/{id}/fork`: creates a session that starts from the state of another session at some event."""

from dataclasses import replace

from fastapi import Request
from starlette.responses import Response

from footplate.api.auth import Caller
from footplate.api.changes import Changed, change
from footplate.api.openapi import describe_request
from footplate.api.requests import read_messages
from footplate.api.routes.files import check_inputs
from footplate.api.routes.sessions import is_prepared, snapshot_of
from footplate.api.routing import router_of
from footplate.api.services import get_services
from footplate.api.wire import answers, forks, sessions
from footplate.api.wire.events import inputs_of
from footplate.api.wire.forks import SessionFork
from footplate.domain.services import Unit

router = router_of("/v1/sessions/{session_id}/fork", "sessions")


@router.post("", response_model=answers.Session, openapi_extra=describe_request(body=SessionFork))
async def fork_session(request: Request, session_id: str, principal: Caller) -> Response:
    """Forks a session. The parent does not change, and its history is shared with the fork, not copied."""
    body, raw = await read_messages(request, SessionFork)
    services = get_services(request)
    point = forks.point_of(body)
    inputs = inputs_of(body.initial_events)
    await check_inputs(services, principal, inputs)
    agent = None if body.agent is None else await snapshot_of(services, principal, body.agent)
    update = forks.change_of(body, agent, default_harness=services.default_harness)

    async def work(unit: Unit) -> Changed:
        session, accepted = await unit.fork_session(
            principal,
            session_id,
            point=point,
            environment_id=body.environment_id,
            change=update,
            inputs=inputs,
        )
        return sessions.answer(session), replace(accepted, prepare=is_prepared(services, session.agent))

    return await change(request, principal, raw, work, audit_action="session.fork")
