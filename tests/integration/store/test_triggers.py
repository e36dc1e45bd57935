"""Triggers in the real database: deliveries that act once, limits, failures that may be repeated, and their members."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from footplate.domain.audit import AuditFilter
from footplate.domain.errors import Conflict, InvalidRequest, NotFound, Unavailable
from footplate.domain.json import JsonObject
from footplate.domain.organisations.limits import ORGANISATION, LimitName
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.visibility import Audience, Visibility
from footplate.domain.pagination import Page
from footplate.domain.ports.api import AcceptedInputs
from footplate.domain.sessions import triggers
from footplate.domain.sessions.deployments import RunErrorType, SessionTemplate
from footplate.domain.sessions.steps import Step, StepDefinition, StepKind
from footplate.domain.sessions.triggers import (
    DeliveryOutcome,
    SignedDelivery,
    Trigger,
    TriggerDefinition,
    TriggerDelivery,
    TriggerLimitExceeded,
)
from footplate.store.resources.limits import LimitStore
from footplate.store.resources.webhooks import WebhookExpiry

from .test_deployments import Office, office  # noqa: F401 - a fixture

pytestmark = pytest.mark.requirement("O8")

SHELL = StepDefinition(kind=StepKind.SHELL, command="git checkout ${payload.branch}", name="build")
PAYLOAD: JsonObject = {"branch": "main"}


async def create(office: Office, principal: Principal | None = None, **fields: object) -> Trigger:  # noqa: F811
    template = SessionTemplate(agent=office.agent, steps=[(SHELL, {})])
    definition = TriggerDefinition(
        name="push", environment_id=office.environment_id, template=template, title="Push to ${payload.branch}"
    )
    async with office.unit() as unit:
        trigger, secret = await unit.create_trigger(
            principal or office.admin,
            replace(definition, **fields),  # pyrefly: ignore[bad-argument-type]
        )
    assert secret.startswith("whsec_")
    return trigger


async def deliver(
    office: Office,  # noqa: F811
    trigger: Trigger,
    delivery_id: str = "msg_1",
    payload: JsonObject = PAYLOAD,
    body_hash: bytes = b"1",
) -> tuple[TriggerDelivery, AcceptedInputs | None]:
    signed = SignedDelivery(trigger_id=trigger.id, delivery_id=delivery_id, body_hash=body_hash, payload=payload)
    unknown = Principal(office.admin.organisation, "", "", frozenset())
    async with office.cell.units.unit(unknown, None) as unit:
        return await unit.process_trigger_delivery(unknown.organisation, signed, check_context=lambda _: None)


async def read_steps(office: Office, session_id: str | None) -> list[Step]:  # noqa: F811
    assert session_id is not None
    return [*await office.cell.reads.steps(office.admin, session_id, states=(), limit=100, after=None)]


async def count_sessions(office: Office) -> int:  # noqa: F811
    async with office.cell.database.connection() as connection:
        counted: int = await connection.fetchval(
            "select count(*) from sessions where organisation = $1", office.admin.organisation
        )
    return counted


async def test_a_delivery_creates_a_session_with_the_values_of_its_payload(office: Office) -> None:  # noqa: F811
    trigger = await create(office, metadata={"a": "b"})
    delivery, accepted = await deliver(office, trigger)
    assert (delivery.outcome, delivery.error, delivery.attempts) == (DeliveryOutcome.SESSION_CREATED, None, 1)
    assert accepted is not None
    assert (accepted.session_id, accepted.wake) == (delivery.session_id, True)
    session = await office.cell.reads.session(office.admin, str(delivery.session_id))
    assert (session.title, session.metadata, session.created_by) == ("Push to main", {"a": "b"}, office.admin.id)
    (step,) = await read_steps(office, delivery.session_id)
    assert (step.definition.command, step.definition.payload_values) == (SHELL.command, {"branch": "main"})
    listed = await office.cell.reads.trigger_deliveries(office.admin, trigger.id, Page(limit=10))
    assert [*listed] == [delivery]


async def test_of_concurrent_duplicates_one_acts_and_all_get_its_result(office: Office) -> None:  # noqa: F811
    trigger = await create(office)
    results = await asyncio.gather(*(deliver(office, trigger) for _ in range(5)))
    assert len({delivery for delivery, _ in results}) == 1
    assert sum(accepted is not None for _, accepted in results) == 1
    assert await count_sessions(office) == 1
    with pytest.raises(Conflict, match="another body"):
        await deliver(office, trigger, body_hash=b"2")
    other, _ = await deliver(office, trigger, "msg_2")
    assert other.session_id != results[0][0].session_id


async def test_a_connection_that_is_lost_before_the_commit_changes_nothing(office: Office) -> None:  # noqa: F811
    trigger = await create(office)
    office.cell.database.lose_next_commit = True
    with pytest.raises(Unavailable):
        await deliver(office, trigger)
    assert await count_sessions(office) == 0
    delivery, _ = await deliver(office, trigger)
    assert (delivery.outcome, delivery.attempts) == (DeliveryOutcome.SESSION_CREATED, 1)
    assert await count_sessions(office) == 1


async def test_steps_are_added_to_an_existing_session(office: Office) -> None:  # noqa: F811
    session_id = await office.cell.session(office.admin)
    trigger = await create(
        office, session_id=session_id, environment_id=None, template=SessionTemplate(agent={}, steps=[(SHELL, {})])
    )
    first, _ = await deliver(office, trigger)
    await deliver(office, trigger)
    second, _ = await deliver(office, trigger, "msg_2", {"branch": "${steps.build.stdout}"})
    assert (first.outcome, first.session_id) == (DeliveryOutcome.STEPS_ADDED, session_id)
    assert second.session_id == session_id
    values = [step.definition.payload_values for step in await read_steps(office, session_id)]
    assert values == [{"branch": "main"}, {"branch": "${steps.build.stdout}"}]
    hidden = await office.member("operator")
    async with office.cell.database.connection() as connection:
        await connection.execute("update sessions set visible_to = 'owner' where id = $1", session_id)
    with pytest.raises(NotFound):
        async with office.unit() as unit:
            await unit.update_trigger(hidden, trigger.id, lambda found: found.definition)
    with pytest.raises(NotFound):
        await office.cell.reads.trigger(hidden, trigger.id)
    entries = await office.cell.reads.audit(hidden, Page(limit=10), AuditFilter(kind="change"))
    assert "trigger" not in {entry.layer for entry in entries}
    assert await office.cell.reads.triggers(hidden, Page(limit=10)) == []


async def test_changes_of_a_hidden_trigger_are_hidden_in_the_audit_trail(office: Office) -> None:  # noqa: F811
    trigger = await create(office)
    viewer = await office.member("operator")

    async def find_layers(principal: Principal) -> set[str | None]:
        return {entry.layer for entry in await office.cell.reads.audit(principal, Page(limit=10), AuditFilter())}

    assert "trigger" in await find_layers(viewer)
    async with office.cell.database.connection() as connection:
        await connection.execute("update triggers set visible_to = 'owner' where id = $1", trigger.id)
    assert "trigger" not in await find_layers(viewer)
    assert "trigger" in await find_layers(office.admin)


async def test_a_condition_that_is_false_is_recorded_and_starts_nothing(office: Office) -> None:  # noqa: F811
    trigger = await create(office, condition='payload.branch == "main"')
    ignored, accepted = await deliver(office, trigger, payload={"branch": "other"})
    assert (ignored.outcome, ignored.session_id, accepted) == (DeliveryOutcome.IGNORED, None, None)
    assert (await deliver(office, trigger))[0] == ignored
    failed, _ = await deliver(office, trigger, "msg_2", {})
    assert failed.error is not None
    assert (failed.outcome, failed.error.type) == (DeliveryOutcome.FAILED, RunErrorType.REJECTED)
    assert await count_sessions(office) == 0


async def test_a_delivery_that_failed_may_be_repeated(office: Office) -> None:  # noqa: F811
    trigger = await create(office)
    limits = LimitStore(office.cell.database)
    await limits.set_operator_limit(office.admin.organisation, LimitName.SESSIONS, ORGANISATION, 0)
    failed, accepted = await deliver(office, trigger)
    assert failed.error is not None
    assert (failed.error.type, failed.session_id, accepted) == (RunErrorType.LIMIT_REACHED, None, None)
    missing, _ = await deliver(office, trigger, "msg_2", {})
    assert missing.error is not None
    assert "no value for ${payload.branch}" in missing.error.message
    await limits.set_operator_limit(office.admin.organisation, LimitName.SESSIONS, ORGANISATION, None)
    repeated, _ = await deliver(office, trigger)
    assert (repeated.id, repeated.outcome, repeated.attempts) == (failed.id, DeliveryOutcome.SESSION_CREATED, 2)
    assert await count_sessions(office) == 1


async def test_a_trigger_accepts_a_limited_number_of_deliveries(office: Office) -> None:  # noqa: F811
    trigger = await create(office, max_per_minute=2)
    first, _ = await deliver(office, trigger)
    await deliver(office, trigger, "msg_2")
    with pytest.raises(TriggerLimitExceeded) as refused:
        await deliver(office, trigger, "msg_3")
    assert 0 < (refused.value.retry_after or 0) <= 60
    assert (await deliver(office, trigger))[0] == first  # a duplicate is not counted
    async with office.cell.database.connection() as connection:
        await connection.execute(
            "update trigger_deliveries set attempted_at = now() - interval '61 seconds' where trigger_id = $1",
            trigger.id,
        )
    await deliver(office, trigger, "msg_3")
    assert await count_sessions(office) == 3


async def test_a_paused_or_archived_trigger_acts_on_nothing(office: Office) -> None:  # noqa: F811
    trigger = await create(office)
    keys = await office.cell.reads.trigger_keys(trigger.id)
    assert keys is not None
    assert (len(keys.secrets), keys.principal) == (1, replace(office.admin, name=keys.principal.name))  # pyrefly: ignore[missing-attribute]
    async with office.unit() as unit:
        await unit.update_trigger(office.admin, trigger.id, lambda found: replace(found.definition, is_paused=True))
    with pytest.raises(Conflict):
        await deliver(office, trigger)
    with pytest.raises(Conflict):
        await create(office)  # the name is taken
    async with office.unit() as unit:
        await unit.archive_trigger(office.admin, trigger.id)
    assert await office.cell.reads.trigger_keys(trigger.id) is None
    with pytest.raises(NotFound):
        await deliver(office, trigger)
    with pytest.raises(InvalidRequest):
        async with office.unit() as unit:
            await unit.update_trigger(office.admin, trigger.id, lambda found: found.definition)
    await create(office)
    assert await count_sessions(office) == 0


async def test_secrets_rotate_with_an_overlap_and_old_rows_are_deleted(office: Office) -> None:  # noqa: F811
    trigger = await create(office)
    await deliver(office, trigger)
    async with office.unit() as unit:
        rotated, secret = await unit.rotate_trigger_secret(office.admin, trigger.id, overlap=timedelta(hours=1))
    assert rotated.old_secret_expires_at is not None
    keys = await office.cell.reads.trigger_keys(trigger.id)
    assert keys is not None
    assert (len(keys.secrets), keys.secrets[0]) == (2, secret)
    async with office.cell.database.connection() as connection:
        await connection.execute("update triggers set old_secret_expires_at = now() where id = $1", trigger.id)
        await connection.execute(
            "update trigger_deliveries set attempted_at = now() - interval '50 minutes' where trigger_id = $1",
            trigger.id,
        )
    keys = await office.cell.reads.trigger_keys(trigger.id)
    assert keys is not None
    assert keys.secrets == [secret]
    expiry = WebhookExpiry(office.cell.database, timedelta(seconds=1))
    await expiry.run()  # deliveries are stored for an hour at least
    assert len(await office.cell.reads.trigger_deliveries(office.admin, trigger.id, Page(limit=10))) == 1
    async with office.cell.database.connection() as connection:
        assert await connection.fetchval("select old_secret from triggers where id = $1", trigger.id) is None
        await connection.execute(
            "update trigger_deliveries set attempted_at = now() - interval '2 hours' where trigger_id = $1", trigger.id
        )
    await expiry.run()
    assert await office.cell.reads.trigger_deliveries(office.admin, trigger.id, Page(limit=10)) == []


async def test_a_trigger_ends_with_the_deletion_of_its_session(office: Office) -> None:  # noqa: F811
    """Its owner would not see it any more, and could not use its name again."""
    author = await office.member("operator")
    for _ in range(2):
        session_id = await office.cell.session(author)
        template = SessionTemplate(agent={}, steps=[(SHELL, {})])
        trigger = await create(office, author, session_id=session_id, environment_id=None, template=template)
        await office.cell.delete(author, session_id)
        await WebhookExpiry(office.cell.database, timedelta(days=1)).run()
        assert await office.cell.reads.trigger_keys(trigger.id) is None


async def test_deliveries_act_with_the_present_rights_of_the_member(office: Office) -> None:  # noqa: F811
    author, successor = await office.member("operator"), await office.member("operator")
    trigger = await create(office, author)
    first, _ = await deliver(office, trigger)
    assert (await office.cell.reads.session(office.admin, str(first.session_id))).created_by == author.id
    async with office.unit() as unit:
        await unit.update_member(office.admin, author.id, roles=["viewer"], disabled=None)
    demoted, _ = await deliver(office, trigger, "msg_2")
    assert demoted.outcome is DeliveryOutcome.FAILED
    async with office.unit() as unit:
        await unit.update_member(office.admin, author.id, roles=["operator"], disabled=True)
    disabled, _ = await deliver(office, trigger, "msg_3")
    assert disabled.error is not None
    assert "is disabled" in disabled.error.message
    async with office.unit() as unit:
        await unit.update_member(office.admin, author.id, roles=None, disabled=True, successor_id=successor.id)
    taken_over, _ = await deliver(office, trigger, "msg_3")
    assert (await office.cell.reads.session(office.admin, str(taken_over.session_id))).created_by == successor.id
    assert (await office.cell.reads.trigger(office.admin, trigger.id)).owner_id == successor.id


async def test_private_triggers_are_hidden(office: Office) -> None:  # noqa: F811
    author, other = await office.member("operator"), await office.member("operator")
    trigger = await create(office, author, audience=Audience(Visibility.PRIVATE))
    reads = office.cell.reads
    assert await reads.triggers(other, Page(limit=10)) == []
    assert [one.id for one in await reads.triggers(author, Page(limit=10))] == [trigger.id]
    for call in (reads.trigger(other, trigger.id), reads.trigger_deliveries(other, trigger.id, Page(limit=10))):
        with pytest.raises(NotFound):
            await call
    with pytest.raises(NotFound):
        async with office.unit() as unit:
            await unit.archive_trigger(other, trigger.id)


async def test_an_organisation_has_a_limited_number_of_triggers(
    office: Office,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(triggers, "MAX_TRIGGERS", 1)
    await create(office)
    with pytest.raises(Conflict, match="cannot have more"):
        await create(office, name="other")
