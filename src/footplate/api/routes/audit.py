"""`/v1/audit`: lists the entries of the audit trail, and verifies that no entry was changed."""

from datetime import datetime

from fastapi import Request
from starlette.responses import Response

from footplate.api import pagination
from footplate.api.auth import Caller
from footplate.api.openapi import describe_request
from footplate.api.requests.parsing import read_query
from footplate.api.routing import create_router
from footplate.api.service_container import get_services
from footplate.api.wire import response_models
from footplate.api.wire.json_responses import json_response, list_response
from footplate.api.wire.policy import audit, policy_response_models
from footplate.api.wire.policy.audit import ListAudit, VerifyAudit
from footplate.domain.audit import AuditEntry, AuditFilter
from footplate.domain.pagination import Page

router = create_router("/v1/audit", "audit")


@router.get(
    "",
    response_model=response_models.Listing[policy_response_models.AuditEntry],
    openapi_extra=describe_request(query=ListAudit),
)
async def list_audit(request: Request, principal: Caller) -> Response:
    query = read_query(request, ListAudit)
    cursor = pagination.decode_row_cursor("audit", query.page, query.order)
    page = Page(
        limit=query.limit + 1,
        order=query.order,
        after=cursor.position if cursor else None,
        created_gte=query.created_at_gte,
        created_lte=query.created_at_lte,
    )
    audit_filter = AuditFilter(
        kind=query.kind,
        session=query.session_id,
        outcome=query.outcome,
        tool=query.tool,
        decided_by=query.answered_by,
        member=query.member,
    )
    rows = await get_services(request).reads.audit(principal, page, audit_filter)
    page_rows, page_cursors = pagination.cut_page(
        "audit", rows, _cursor_position, limit=query.limit, order=query.order, cursor=cursor
    )
    return list_response([audit.serialize_audit_entry(row) for row in page_rows], next_page=page_cursors.next_page)


@router.get(
    "/verify",
    response_model=policy_response_models.AuditVerification,
    openapi_extra=describe_request(query=VerifyAudit),
)
async def verify_audit(request: Request, principal: Caller) -> Response:
    """Reads the whole audit trail and recomputes every hash. The faults describe entries that
    were changed, removed or reordered, or that should be sealed but are not.
    """
    query = read_query(request, VerifyAudit)
    return json_response(
        audit.serialize_verification(await get_services(request).reads.verify_audit(principal, query.head))
    )


def _cursor_position(row: AuditEntry) -> tuple[datetime, str]:
    assert row.created_at is not None
    return row.created_at, row.id
