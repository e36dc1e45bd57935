"""`/v1/policies`: reads and updates the organisation's permission rules, imports settings files, and evaluates proposed
rules against past calls. The rules of projects, agents and sessions are fields of those resources.
"""

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final
from weakref import WeakValueDictionary

from fastapi import Request
from starlette.responses import Response

from footplate.api import pagination
from footplate.api.auth import Caller
from footplate.api.openapi import describe_request
from footplate.api.requests.idempotency import ChangeResult, execute_change
from footplate.api.requests.parsing import read_body, read_query
from footplate.api.routes.session.sessions import load_agent_snapshot
from footplate.api.routing import create_router
from footplate.api.service_container import ApiServices, get_services
from footplate.api.wire.agent_and_environment_queries import NoParameters
from footplate.api.wire.json_responses import json_response
from footplate.api.wire.policy import explanations, permissions, policy_response_models, replays
from footplate.api.wire.policy.explanations import ExplainRequest
from footplate.api.wire.policy.permissions import PolicyUpdate, SettingsImport
from footplate.api.wire.policy.replays import ReplayRequest
from footplate.domain.errors import InvalidRequest
from footplate.domain.json import JsonObject
from footplate.domain.organisations.principals import Principal
from footplate.domain.policy.permissions import Layer, check_policy_writer
from footplate.domain.policy.policy_replay import SessionRules, StoredCall
from footplate.domain.ports.api import UnitOfWork
from footplate.gate import policy_explanation
from footplate.gate.policy_replay import PolicyReplay, ReplayResult
from footplate.gate.rules.claude_settings import import_settings

router = create_router("/v1/policies", "policies")
_CURSOR_KIND: Final = "calls"
_REPLAY_CPU_SECONDS: Final = 2.0
"""CPU time for one page."""
_replay_locks: Final[WeakValueDictionary[str, asyncio.Lock]] = WeakValueDictionary()
"""One lock for each organisation."""


@router.get("", response_model=policy_response_models.OrganisationPolicy)
async def retrieve_policy(request: Request, principal: Caller) -> Response:
    read_query(request, NoParameters)
    return json_response(permissions.serialize_policy(await get_services(request).reads.policy(principal)))


@router.post(
    "", response_model=policy_response_models.OrganisationPolicy, openapi_extra=describe_request(body=PolicyUpdate)
)
async def update_policy(request: Request, principal: Caller) -> Response:
    """Updates the rules. They apply to every call within a second, including calls of running turns. Send
    `expected_updated_at` so that you do not overwrite a change of another member.
    """
    body, raw = await read_body(request, PolicyUpdate)
    check_policy_writer(principal, "the organisation")
    permissions.check_hosts(body.permissions, get_services(request).hook_access)

    async def work(unit: UnitOfWork) -> ChangeResult:
        rules = None if body.permissions is None else permissions.dump_permissions(body.permissions)
        return permissions.serialize_policy(
            await unit.set_policy(principal, rules, permissions.dump_terms(body.approvals), expected=body.expected)
        ), None

    return await execute_change(request, principal, raw, work)


@router.post(
    "/import",
    response_model=policy_response_models.ImportedPermissions,
    openapi_extra=describe_request(body=SettingsImport),
)
async def import_permissions(request: Request, principal: Caller) -> Response:  # noqa: ARG001 - requires a key
    """Converts a settings file into permission rules without storing anything. The notes say which parts were skipped,
    and why.
    """
    body, _ = await read_body(request, SettingsImport)
    imported = await asyncio.to_thread(import_settings, json.dumps(body.settings), Layer.ORGANISATION)
    return json_response(await asyncio.to_thread(permissions.serialize_import, imported, body.settings))


@router.post(
    "/replay", response_model=policy_response_models.PolicyReplay, openapi_extra=describe_request(body=ReplayRequest)
)
async def replay_policy(request: Request, principal: Caller) -> Response:
    """Evaluates proposed rules against past calls, newest first. Each response covers one page of calls, and its totals
    count only that page.

    If a page takes more than two seconds of CPU time, the response ends early. Pass `next_page` to continue. Each API
    server runs an organisation's replays one at a time; further requests wait.
    """
    body, _ = await read_body(request, ReplayRequest)
    cursor = pagination.decode_row_cursor(_CURSOR_KIND, body.page, "desc")
    reads = get_services(request).reads
    if body.session_id is not None:
        await reads.check_session_visible(principal, body.session_id)
    if body.project_id is not None:
        await reads.project(principal, body.project_id)
    after = cursor.position if cursor else None
    rows = await reads.calls(principal, body.call_filter, limit=body.limit + 1, after=after)
    calls = rows[: body.limit]
    rules = await reads.rules_by_session(principal, sorted({call.session_id for call in calls}))
    async with _replay_locks.setdefault(principal.organisation, asyncio.Lock()):
        proposed = permissions.dump_permissions(body.permissions)
        evaluated = await asyncio.to_thread(
            _evaluate_calls, Layer[body.layer.upper()], proposed, principal.organisation, calls, rules
        )
    _, page_cursors = pagination.cut_page(
        _CURSOR_KIND, rows, _cursor_position, limit=len(evaluated) or body.limit, order="desc", cursor=cursor
    )
    return json_response(replays.serialize_replay(evaluated, next_page=page_cursors.next_page))


@router.post(
    "/explain", response_model=explanations.PolicyExplanation, openapi_extra=describe_request(body=ExplainRequest)
)
async def explain_call(request: Request, principal: Caller) -> Response:
    """Returns what the gate would decide about a tool call, and why. The call does not run, and no hook does."""
    body, _ = await read_body(request, ExplainRequest)
    rules = await _load_rules(get_services(request), principal, body)
    async with _replay_locks.setdefault(principal.organisation, asyncio.Lock()):
        explanation = await asyncio.to_thread(
            policy_explanation.explain_call,
            body.tool,
            body.input,
            rules,
            organisation=principal.organisation,
            session_id=body.session_id,
        )
    return json_response(explanations.serialize_explanation(body.tool, explanation))


async def _load_rules(services: ApiServices, principal: Principal, body: ExplainRequest) -> SessionRules:
    reads = services.reads
    if body.session_id is None:
        agent = {} if body.agent_id is None else await load_agent_snapshot(services, principal, body.agent_id)
        if body.project_id is not None:
            await reads.project(principal, body.project_id)
        return await reads.rules_of_new_session(principal, agent, [body.project_id] if body.project_id else [])
    if body.agent_id is not None or body.project_id is not None:
        raise InvalidRequest(
            "session_id: a session has its own agent and projects",
            field="session_id",
            help_text="Omit agent_id and project_id, or omit session_id.",
        )
    await reads.check_session_visible(principal, body.session_id)
    return (await reads.rules_by_session(principal, [body.session_id]))[body.session_id]


def _evaluate_calls(
    layer: Layer,
    proposed: JsonObject,
    organisation: str,
    calls: Sequence[StoredCall],
    rules: Mapping[str, SessionRules],
) -> list[tuple[StoredCall, ReplayResult | None]]:
    """Evaluates as many calls as the time limit permits."""
    deadline = time.thread_time() + _REPLAY_CPU_SECONDS
    replay = PolicyReplay(layer, proposed)
    evaluated: list[tuple[StoredCall, ReplayResult | None]] = []
    for call in calls:
        is_known = call.input is not None and call.session_id in rules
        evaluated.append((call, replay.evaluate_call(organisation, call, rules[call.session_id]) if is_known else None))
        if time.thread_time() > deadline:
            break
    return evaluated


def _cursor_position(call: StoredCall) -> tuple[datetime, str]:
    return call.created_at, call.id
