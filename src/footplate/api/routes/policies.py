"""`/v1/policies`: the organisation's permission rules. Those of projects, agents and sessions are fields of theirs."""

import json

from fastapi import Request
from starlette.responses import Response

from footplate.api.auth import Asking
from footplate.api.changes import Changed, change
from footplate.api.openapi import takes
from footplate.api.replies import reply
from footplate.api.requests import read_body, read_query
from footplate.api.routing import router_of
from footplate.api.services import services_of
from footplate.api.wire import gate_answers, permissions
from footplate.api.wire.lists import NoParameters
from footplate.api.wire.permissions import PolicyUpdate, SettingsImport
from footplate.domain.permissions import Layer
from footplate.domain.services import Unit
from footplate.gate.settings import import_settings

router = router_of("/v1/policies", "policies")


@router.get("", response_model=gate_answers.Policy)
async def retrieve_policy(request: Request, principal: Asking) -> Response:
    read_query(request, NoParameters)
    return reply(permissions.answer(await services_of(request).reads.policy(principal)))


@router.post("", response_model=gate_answers.Policy, openapi_extra=takes(body=PolicyUpdate))
async def update_policy(request: Request, principal: Asking) -> Response:
    """In force for every call from a second later on, also of turns that run."""
    body, raw = await read_body(request, PolicyUpdate)
    permissions.check_hosts(body.permissions, services_of(request).hooks)

    async def work(unit: Unit) -> Changed:
        rules = None if body.permissions is None else permissions.stored(body.permissions)
        return permissions.answer(await unit.set_policy(principal, rules, permissions.terms(body.approvals))), None

    return await change(request, principal, raw, work)


@router.post("/import", response_model=gate_answers.ImportedPermissions, openapi_extra=takes(body=SettingsImport))
async def import_permissions(request: Request, principal: Asking) -> Response:  # noqa: ARG001 - who asks has a key
    """Nothing is stored: the answer says which rules the file has, and which of it is left out, and why."""
    body, _ = await read_body(request, SettingsImport)
    found = import_settings(json.dumps(body.settings), Layer.ORGANISATION)
    return reply(permissions.imported(found, body.settings.get("hooks")))
