"""Client methods for the audit trail (list its entries, verify that no entry was changed), for usage reports, and for
the state of the deployment.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from footplate.client.pagination import Pages
from footplate.client.response_models import AuditEntry, AuditVerification, TaskQueue, UsageReport, Versions, Worker
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


class DeploymentHealth:
    """The state of the whole deployment. Workers and queues need the role `admin`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def workers(self) -> Pages[Worker]:
        """The workers that run, and those that were lost within the last day."""
        return Pages(self._transport, "/v1/workers", Worker, {})

    def queues(self) -> Pages[TaskQueue]:
        return Pages(self._transport, "/v1/queues", TaskQueue, {})

    async def versions(self) -> Versions:
        return Versions.model_validate(await self._transport.get("/v1/versions"))


class UsageReports:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def query(
        self,
        *,
        group_by: Sequence[str] = (),
        start: datetime | None = None,
        end: datetime | None = None,
        limit: int | None = None,
        filters: Mapping[str, Sequence[str]] | None = None,
        min_iterations: int | None = None,
    ) -> UsageReport:
        """Returns the usage of turns that started at or after `start` and before `end`. `filters` has a list of values
        for each of `session`, `agent`, `model`, `harness`, `member`, `project`, `status`, `tool` and `parameter`
        (`NAME=VALUE`). `min_iterations`: only lines with at least so many requests to models.
        """
        params: dict[str, Any] = {
            "group_by[]": list(group_by) or None,
            "from": None if start is None else start.isoformat(),
            "to": None if end is None else end.isoformat(),
            "limit": limit,
            "min_iterations": min_iterations,
            **{f"{name}[]": list(values) for name, values in (filters or {}).items()},
        }
        present = {name: value for name, value in params.items() if value is not None}
        return UsageReport.model_validate(await self._transport.get("/v1/usage", params=present))
