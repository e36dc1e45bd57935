"""In-memory fakes of triggers. A delivery is only recorded; nothing creates its session."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from footplate.domain import ids
from footplate.domain.errors import NotFound
from footplate.domain.organisations.principals import Principal
from footplate.domain.pagination import Page
from footplate.domain.ports.api import AcceptedInputs
from footplate.domain.sessions.deployments import CheckContext
from footplate.domain.sessions.triggers import (
    DeliveryOutcome,
    SignedDelivery,
    Trigger,
    TriggerDefinition,
    TriggerDelivery,
    TriggerKeys,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECRETS = ("whsec_Zmlyc3QtZmlyc3QtZmlyc3QtZmlyc3Q=", "whsec_c2Vjb25kLXNlY29uZC1zZWNvbmQtc2Vj")


@dataclass
class TriggerWorld:
    triggers: dict[str, Trigger] = field(default_factory=dict)
    secrets: dict[str, list[str]] = field(default_factory=dict)
    received: list[SignedDelivery] = field(default_factory=list)
    deliveries: dict[str, TriggerDelivery] = field(default_factory=dict)
    outcome: DeliveryOutcome = DeliveryOutcome.SESSION_CREATED


class FakeTriggerReads:
    trigger_world: TriggerWorld

    async def trigger(self, principal: Principal, trigger_id: str) -> Trigger:
        found = self.trigger_world.triggers.get(trigger_id)
        if found is None or found.organisation != principal.organisation:
            raise NotFound("trigger", trigger_id)
        return found

    async def triggers(self, principal: Principal, page: Page) -> Sequence[Trigger]:
        found = [one for one in self.trigger_world.triggers.values() if one.organisation == principal.organisation]
        return [one for one in found if page.include_archived or one.archived_at is None][: page.limit]

    async def trigger_deliveries(
        self, principal: Principal, trigger_id: str, page: Page, *, outcome: DeliveryOutcome | None = None
    ) -> Sequence[TriggerDelivery]:
        await self.trigger(principal, trigger_id)
        found = self.trigger_world.deliveries.values()
        return [one for one in found if outcome in {None, one.outcome}][: page.limit]

    async def trigger_keys(self, trigger_id: str) -> TriggerKeys | None:
        found = self.trigger_world.triggers.get(trigger_id)
        if found is None or found.archived_at is not None:
            return None
        principal = Principal(found.organisation, found.principal_id, "a", frozenset({"member"}))
        return TriggerKeys(
            organisation=found.organisation, secrets=self.trigger_world.secrets[trigger_id], principal=principal
        )


class FakeTriggerUnit(FakeTriggerReads):
    async def create_trigger(self, principal: Principal, definition: TriggerDefinition) -> tuple[Trigger, str]:
        trigger = Trigger(
            id=ids.new_id(ids.TRIGGER),
            organisation=principal.organisation,
            definition=definition,
            principal_id=principal.id,
            owner_id=principal.id,
            old_secret_expires_at=None,
            created_at=NOW,
            updated_at=NOW,
            archived_at=None,
        )
        self.trigger_world.secrets[trigger.id] = [SECRETS[0]]
        return self._store_trigger(trigger), SECRETS[0]

    async def update_trigger(
        self, principal: Principal, trigger_id: str, change: Callable[[Trigger], TriggerDefinition]
    ) -> Trigger:
        old = await self.trigger(principal, trigger_id)
        return self._store_trigger(replace(old, definition=change(old), principal_id=principal.id))

    async def archive_trigger(self, principal: Principal, trigger_id: str) -> Trigger:
        return self._store_trigger(replace(await self.trigger(principal, trigger_id), archived_at=NOW))

    async def rotate_trigger_secret(
        self, principal: Principal, trigger_id: str, *, overlap: timedelta
    ) -> tuple[Trigger, str]:
        found = await self.trigger(principal, trigger_id)
        self.trigger_world.secrets[trigger_id] = [SECRETS[1], *([SECRETS[0]] if overlap else [])]
        return self._store_trigger(replace(found, old_secret_expires_at=NOW + overlap)), SECRETS[1]

    async def process_trigger_delivery(
        self, organisation: str, signed: SignedDelivery, *, check_context: CheckContext
    ) -> tuple[TriggerDelivery, AcceptedInputs | None]:
        world = self.trigger_world
        world.received.append(signed)
        if signed.delivery_id in world.deliveries:
            return world.deliveries[signed.delivery_id], None
        check_context(world.triggers[signed.trigger_id].definition.template.context)
        session_id = ids.new_id(ids.SESSION) if world.outcome is DeliveryOutcome.SESSION_CREATED else None
        delivery = world.deliveries[signed.delivery_id] = TriggerDelivery(
            id=ids.new_id(ids.TRIGGER_DELIVERY),
            trigger_id=signed.trigger_id,
            delivery_id=signed.delivery_id,
            outcome=world.outcome,
            session_id=session_id,
            error=None,
            attempts=1,
            created_at=NOW,
            attempted_at=NOW,
        )
        return delivery, AcceptedInputs(organisation=organisation, session_id=str(session_id), wake=True)

    def _store_trigger(self, trigger: Trigger) -> Trigger:
        self.trigger_world.triggers[trigger.id] = trigger
        return trigger
