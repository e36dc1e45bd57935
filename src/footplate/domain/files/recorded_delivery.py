"""Delivers a session's work. Each delivery is in the log before it is made, so a process that dies leaves no doubt."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from footplate.domain.files.delivery import (
    BranchTarget,
    Delivery,
    DeliveryJournal,
    DeliveryRequest,
    DeliveryResult,
    DeliveryService,
)


class DeliveryLog(Protocol):
    async def find_delivery(self, organisation: str, session_id: str, request: DeliveryRequest) -> Delivery: ...

    def record_delivery(self, delivery: Delivery) -> AbstractAsyncContextManager[Delivery]:
        """Record the delivery, and remove the record if the delivery is refused."""


class Deliverer(Protocol):
    async def merge(
        self,
        delivery: Delivery,
        branch: str | None,
        *,
        actor: str,
        wait: float,
        journal: DeliveryJournal | None = None,
    ) -> DeliveryResult: ...

    async def push(
        self,
        delivery: Delivery,
        branch: str | None,
        *,
        actor: str,
        wait: float,
        journal: DeliveryJournal | None = None,
    ) -> DeliveryResult: ...

    def bundle(self, delivery: Delivery) -> AbstractAsyncContextManager[AsyncIterator[bytes]]: ...


class RecordedDeliveryService(DeliveryService):
    """Delivers a session's work. Each delivery is recorded in the log before it is made."""

    def __init__(self, log: DeliveryLog, deliverer: Deliverer) -> None:
        self._log = log
        self._deliverer = deliverer

    async def find_delivery(self, organisation: str, session_id: str, request: DeliveryRequest) -> Delivery:
        return await self._log.find_delivery(organisation, session_id, request)

    async def merge(
        self, actor: str, delivery: Delivery, target: BranchTarget, journal: DeliveryJournal | None = None
    ) -> DeliveryResult:
        async with self._log.record_delivery(delivery) as known:
            return await self._deliverer.merge(known, target.branch, actor=actor, wait=target.wait, journal=journal)

    async def push(
        self, actor: str, delivery: Delivery, target: BranchTarget, journal: DeliveryJournal | None = None
    ) -> DeliveryResult:
        async with self._log.record_delivery(delivery) as known:
            return await self._deliverer.push(known, target.branch, actor=actor, wait=target.wait, journal=journal)

    @asynccontextmanager
    async def bundle(self, delivery: Delivery) -> AsyncIterator[AsyncIterator[bytes]]:
        async with self._log.record_delivery(delivery) as known, self._deliverer.bundle(known) as pieces:
            yield pieces
