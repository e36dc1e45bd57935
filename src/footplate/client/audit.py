"""Client methods for the audit trail: list its entries, and verify that no entry was changed."""

from typing import Any

from footplate.client.pagination import Pages
from footplate.client.response_models import AuditEntry, AuditVerification
from footplate.client.transport import Transport


class Audit:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(
        self,
        *,
        limit: int | None = None,
        order: str | None = None,
        kind: str | None = None,
        session_id: str | None = None,
        outcome: str | None = None,
        tool: str | None = None,
        member: str | None = None,
    ) -> Pages[AuditEntry]:
        """Newest first, unless `order` is `asc`. `member`: the id or the name of a member."""
        params: dict[str, Any] = {
            "limit": limit,
            "order": order,
            "kind": kind,
            "session_id": session_id,
            "outcome": outcome,
            "tool": tool,
            "member": member,
        }
        return Pages(self._transport, "/v1/audit", AuditEntry, params)

    async def verify(self, *, head: str | None = None) -> AuditVerification:
        """Verifies the whole trail. If `head`, a hash saved from an earlier check, is missing, that is a fault."""
        params = {"head": head} if head is not None else {}
        return AuditVerification.model_validate(await self._transport.get("/v1/audit/verify", params=params))
