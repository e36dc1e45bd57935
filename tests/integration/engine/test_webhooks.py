"""Webhooks with real PostgreSQL, Temporal and HTTP: delivery, retries, order, rotation, replay and visibility."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest
import pytest_asyncio
from anthropic import Anthropic
from bench.support.webhooks import address_tricks
from bench.support.webhooks.address_tricks import TrickNames, trick_urls
from bench.support.webhooks.receiver import HANG, ReceivedWebhook, WebhookReceiver
from standardwebhooks import Webhook, WebhookVerificationError
from tests.integration.engine.cell import Engine
from tests.integration.store.test_feed import append_events

from footplate.domain import ids
from footplate.domain.errors import Conflict, InvalidRequest, NotFound
from footplate.domain.network.address_policy import AddressPolicy
from footplate.domain.network.dns_lookup import NameLookup
from footplate.domain.organisations.principals import Principal, PrincipalKind
from footplate.domain.organisations.visibility import Audience, Visibility
from footplate.domain.organisations.webhooks import (
    DeliveryStatus,
    NewDelivery,
    WebhookAccess,
    WebhookDelivery,
    WebhookEndpoint,
    WebhookFormat,
    new_secret,
)
from footplate.domain.pagination import Page
from footplate.domain.sessions import events
from footplate.engine.webhooks.endpoint_waker import EndpointWaker
from footplate.engine.webhooks.http_sender import WebhookSender
from footplate.harness import address_check
from footplate.stack.orphan_processes import wait_until
from footplate.store.resources.api_keys import ApiKeys
from footplate.store.resources.webhooks import WebhookExpiry, Webhooks

pytestmark = [pytest.mark.timing, pytest.mark.requirement("O8")]

PATIENCE = 30.0
LOOPBACK_ACCESS = WebhookAccess(AddressPolicy(["127.0.0.1"]), allow_http=True)
IDLE = events.status_idle({"type": "end_turn"})
WAITS = events.status_idle({"type": "requires_action", "event_ids": ["sevt_1"]})


@dataclass(slots=True)
class Hooks:
    engine: Engine
    store: Webhooks
    waker: EndpointWaker
    principal: Principal
    """An administrator of its own organisation."""

    async def new_principal(self, *roles: str, organisation: str | None = None) -> Principal:
        keys, database = ApiKeys(self.engine.cell.database), self.engine.cell.database
        name = organisation or ids.new_id("o").replace("_", "-")
        return await ApiKeys(database).authenticate(await keys.create_key(name, ids.new_id("n"), [*roles]))

    async def create(
        self, url: str, *types: str, principal: Principal | None = None, **options: object
    ) -> tuple[WebhookEndpoint, str]:
        owner = principal or self.principal
        fields = {"session_id": None, "description": None, "webhook_format": WebhookFormat.STANDARD, "ordered": False}
        async with self.engine.cell.units.unit(owner, None) as unit:
            created = await unit.create_webhook_endpoint(owner, url=url, types=types, **{**fields, **options})  # pyrefly: ignore[bad-argument-type]
        self.waker.endpoints_changed(owner.organisation)
        await asyncio.sleep(0)
        return created

    async def session(self, principal: Principal | None = None) -> str:
        session_id = await self.engine.cell.session(principal or self.principal)
        self.wake()
        return session_id

    async def change(self, session_id: str, *new: events.Event) -> None:
        """Appends events with new ids, and wakes the endpoints as the publisher does."""
        fresh = [events.Event(each.type, each.body) for each in new]
        await append_events(self.engine.cell, self.principal, session_id, *fresh)
        self.wake()

    def wake(self) -> None:
        self.waker.endpoints_changed(self.principal.organisation)

    async def deliveries(self, endpoint: WebhookEndpoint) -> list[WebhookDelivery]:
        """Returns the deliveries, oldest first."""
        reads = self.engine.cell.reads
        return [*await reads.webhook_deliveries(self.principal, endpoint.id, Page(limit=1000))][::-1]

    async def endpoint(self, endpoint: WebhookEndpoint) -> WebhookEndpoint:
        return await self.engine.cell.reads.webhook_endpoint(self.principal, endpoint.id)

    async def wait_for(self, endpoint: WebhookEndpoint, *statuses: DeliveryStatus) -> list[WebhookDelivery]:
        """Waits until the deliveries have these statuses, in their order."""

        async def reached() -> bool:
            return [each.status for each in await self.deliveries(endpoint)] == [*statuses]

        assert await wait_until(reached, PATIENCE), await self.deliveries(endpoint)
        return await self.deliveries(endpoint)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def running(idle_engine: Engine) -> AsyncIterator[Hooks]:
    async with idle_engine.with_own_queue().worker() as worker:
        store = Webhooks(idle_engine.cell.database)
        yield Hooks(idle_engine, store, worker.notifiers.endpoint_waker, idle_engine.principal)


@pytest_asyncio.fixture(loop_scope="session")
async def hooks(running: Hooks) -> Hooks:
    return replace(running, principal=await running.new_principal("admin"))


@pytest_asyncio.fixture(loop_scope="session")
async def receiver() -> AsyncIterator[WebhookReceiver]:
    async with WebhookReceiver() as opened:
        yield opened


def received_types(receiver: WebhookReceiver) -> list[str]:
    return [each.type for each in receiver.accepted]


async def test_the_official_sdk_accepts_the_events_of_a_session(hooks: Hooks, receiver: WebhookReceiver) -> None:
    stranger = await hooks.new_principal("admin")
    foreign, _ = await hooks.create(receiver.url("/foreign"), principal=stranger)
    endpoint, secret = await hooks.create(receiver.url("/all"), ordered=True)
    session_id = await hooks.session()
    await hooks.change(session_id, events.status_running(), WAITS, events.status_running(), IDLE)
    await receiver.wait_until(lambda: len(receiver.accepted) >= 6)
    await hooks.wait_for(endpoint, *[DeliveryStatus.DELIVERED] * 6)
    assert received_types(receiver) == [
        "session.created",
        "session.status_run_started",
        "session.requires_action",
        "session.status_idled",
        "session.status_run_started",
        "session.status_idled",
    ]
    sdk = Anthropic(api_key="unused", webhook_key=secret)
    for webhook in receiver.accepted:
        event = sdk.beta.webhooks.unwrap(webhook.body, headers=webhook.headers)
        assert (event.type, event.id, event.data.type) == ("event", webhook.id, webhook.type)
        assert event.data.id == session_id
        assert event.data.organization_id == hooks.principal.organisation
        assert event.created_at.tzinfo is not None
    with pytest.raises(WebhookVerificationError):
        Anthropic(api_key="unused", webhook_key=new_secret()).beta.webhooks.unwrap(
            receiver.accepted[0].body, headers=receiver.accepted[0].headers
        )
    assert len({webhook.id for webhook in receiver.accepted}) == 6
    assert await hooks.engine.cell.reads.webhook_deliveries(stranger, foreign.id, Page(limit=9)) == []


async def test_a_failed_delivery_is_repeated_with_the_same_id_and_delays_no_other_endpoint(
    hooks: Hooks, receiver: WebhookReceiver
) -> None:
    attempts: dict[str, int] = defaultdict(int)

    def respond(webhook: ReceivedWebhook) -> int:
        attempts[webhook.path] += 1
        if webhook.path == "/hangs":
            return HANG
        return 503 if webhook.path == "/fails" and attempts["/fails"] < 3 else 204

    receiver.respond = respond
    fails, _ = await hooks.create(receiver.url("/fails"), "session.created")
    hangs, _ = await hooks.create(receiver.url("/hangs"), "session.created")
    works, _ = await hooks.create(receiver.url("/works"), "session.created")
    await hooks.session()
    (done,) = await hooks.wait_for(works, DeliveryStatus.DELIVERED)
    assert (done.attempts, done.last_status_code, done.last_error) == (1, 204, None)
    (done,) = await hooks.wait_for(fails, DeliveryStatus.DELIVERED)
    assert (done.attempts, done.last_status_code) == (3, 204)
    ids_sent = {each.id for each in receiver.received if each.path == "/fails"}
    assert ids_sent == {done.id}
    assert (await hooks.endpoint(fails)).failing_since is None
    assert await receiver.wait_until(lambda: attempts["/hangs"] >= 2)
    (pending,) = await hooks.deliveries(hangs)
    assert (pending.status, pending.last_status_code) == (DeliveryStatus.PENDING, None)
    assert "no response within 1.5 s" in (pending.last_error or "")
    assert (await hooks.endpoint(hangs)).failing_since is not None


async def test_ordered_deliveries_of_a_session_wait_and_other_sessions_do_not(
    hooks: Hooks, receiver: WebhookReceiver
) -> None:
    blocked, free = await hooks.session(), await hooks.session()
    is_open = asyncio.Event()
    receiver.respond = lambda webhook: 200 if is_open.is_set() or webhook.session_id == free else 500
    endpoint, _ = await hooks.create(receiver.url(), ordered=True)
    for session_id in (blocked, free):
        await hooks.change(session_id, events.status_running(), IDLE, events.status_running())
    assert await receiver.wait_until(lambda: len(receiver.accepted) == 3)
    assert await receiver.wait_until(lambda: sum(each.session_id == blocked for each in receiver.received) >= 3)
    assert {each.type for each in receiver.received if each.session_id == blocked} == {"session.status_run_started"}
    is_open.set()
    await hooks.wait_for(endpoint, *[DeliveryStatus.DELIVERED] * 6)
    for session_id in (blocked, free):
        assert [each.type for each in receiver.accepted if each.session_id == session_id] == [
            "session.status_run_started",
            "session.status_idled",
            "session.status_run_started",
        ]


async def test_both_secrets_sign_until_the_overlap_ends_and_deliveries_can_be_replayed(
    hooks: Hooks, receiver: WebhookReceiver
) -> None:
    endpoint, first = await hooks.create(receiver.url(), "session.created")
    await hooks.session()
    (delivery,) = await hooks.wait_for(endpoint, DeliveryStatus.DELIVERED)

    async def rotate_and_replay(overlap: timedelta) -> tuple[str, ReceivedWebhook]:
        async with hooks.engine.cell.units.unit(hooks.principal, None) as unit:
            _, secret = await unit.rotate_webhook_secret(hooks.principal, endpoint.id, overlap=overlap)
            again = await unit.replay_webhook_delivery(hooks.principal, endpoint.id, delivery.id)
        assert (again.id, again.status, again.attempts) == (delivery.id, DeliveryStatus.PENDING, 0)
        count = len(receiver.accepted)
        hooks.wake()
        assert await receiver.wait_until(lambda: len(receiver.accepted) > count)
        await hooks.wait_for(endpoint, DeliveryStatus.DELIVERED)
        return secret, receiver.accepted[-1]

    second, webhook = await rotate_and_replay(timedelta(hours=1))
    for secret in (first, second):
        assert Webhook(secret).verify(webhook.body, webhook.headers)["id"] == delivery.id
    third, webhook = await rotate_and_replay(timedelta())
    assert Webhook(third).verify(webhook.body, webhook.headers)
    for secret in (first, second):
        with pytest.raises(WebhookVerificationError):
            Webhook(secret).verify(webhook.body, webhook.headers)
    async with hooks.engine.cell.units.unit(hooks.principal, None) as unit:
        test = await unit.test_webhook_endpoint(hooks.principal, endpoint.id)
    hooks.wake()
    assert await receiver.wait_until(lambda: receiver.accepted[-1].id == test.id)
    assert receiver.accepted[-1].type == "webhook.test"


async def test_a_lost_wake_signal_is_found_by_the_sweep(hooks: Hooks, receiver: WebhookReceiver) -> None:
    endpoint, _ = await hooks.create(receiver.url(), "session.created")
    await asyncio.sleep(0.5)
    await hooks.engine.cell.session(hooks.principal)  # nothing wakes the endpoint
    for _ in range(20):
        await hooks.waker.run()
        if await receiver.wait_until(lambda: bool(receiver.accepted), 1):
            break
    (delivery,) = await hooks.wait_for(endpoint, DeliveryStatus.DELIVERED)
    target = await hooks.store.load_target(hooks.principal.organisation, endpoint.id)
    assert target is not None
    # A repeated activity, before and after the other one has moved the position.
    for after, event_type in ((target.position - 1, "session.updated"), (target.position, delivery.type)):
        new_id, session_id = ids.new_id(ids.WEBHOOK_DELIVERY), delivery.session_id or ""
        repeated = NewDelivery(new_id, target.position, session_id, event_type, {})
        await hooks.store.create_deliveries(endpoint.id, after=after, position=target.position, deliveries=[repeated])
    assert len(await hooks.deliveries(endpoint)) == 1
    expiry = WebhookExpiry(hooks.engine.cell.database, timedelta(days=7))
    await expiry.run()
    assert len(await hooks.deliveries(endpoint)) == 1
    async with hooks.engine.cell.database.connection() as connection:
        await connection.execute(
            "update webhook_deliveries set created_at = now() - interval '8 days' where endpoint_id = $1", endpoint.id
        )
    await expiry.run()
    assert await hooks.deliveries(endpoint) == []


async def test_an_endpoint_receives_what_its_creator_can_see(hooks: Hooks, receiver: WebhookReceiver) -> None:
    async with hooks.engine.cell.units.unit(hooks.principal, None) as unit:
        member = await unit.create_member(hooks.principal, kind=PrincipalKind.PERSON, name="Ann", roles=["operator"])
    ann = Principal(hooks.principal.organisation, member.id, "Ann", frozenset({"operator"}))
    session_id = await hooks.session()
    receiver.respond = lambda _: 500
    for_ann, _ = await hooks.create(receiver.url("/ann"), principal=ann, session_id=session_id)
    await hooks.change(session_id, events.status_running())
    await receiver.wait_until(lambda: bool(receiver.received))
    reads, units = hooks.engine.cell.reads, hooks.engine.cell.units
    assert [each.id for each in await reads.webhook_endpoints(ann, Page(limit=9))] == [for_ann.id]
    everything, _ = await hooks.create(receiver.url("/all"), "step.created")
    with pytest.raises(NotFound):
        await reads.webhook_endpoint(ann, everything.id)
    async with units.unit(hooks.principal, None) as unit:
        private = Audience(Visibility.PRIVATE)
        await unit.update_session(hooks.principal, session_id, lambda found: replace(found, audience=private))
    receiver.respond = lambda _: 200
    (delivery,) = await hooks.wait_for(for_ann, DeliveryStatus.FAILED)
    assert "can no longer see the session" in (delivery.last_error or "")
    assert not receiver.accepted
    with pytest.raises(NotFound):
        await reads.webhook_endpoint(ann, for_ann.id)
    async with units.unit(hooks.principal, None) as unit:
        await unit.update_member(hooks.principal, member.id, roles=None, disabled=True)
    await hooks.change(session_id, IDLE)

    async def is_disabled() -> bool:
        return (await hooks.endpoint(for_ann)).disabled_reason == "The member who created it was disabled."

    assert await wait_until(is_disabled, PATIENCE)
    with pytest.raises(Conflict, match="is disabled"):
        async with units.unit(hooks.principal, None) as unit:
            await unit.test_webhook_endpoint(hooks.principal, for_ann.id)


async def test_an_endpoint_that_fails_for_days_is_disabled_and_one_that_is_gone_at_once(
    hooks: Hooks, receiver: WebhookReceiver
) -> None:
    receiver.respond = lambda webhook: 410 if webhook.path == "/gone" else 500
    failing, _ = await hooks.create(receiver.url("/failing"), "session.created")
    gone, _ = await hooks.create(receiver.url("/gone"), "session.created")
    await hooks.session()
    assert await receiver.wait_until(lambda: any(each.path == "/failing" for each in receiver.received))
    async with hooks.engine.cell.database.connection() as connection:
        await connection.execute(
            "update webhook_endpoints set failing_since = now() - interval '6 days' where id = $1", failing.id
        )
        await connection.execute("update webhook_deliveries set retry_until = now() where endpoint_id = $1", failing.id)
    hooks.wake()
    (delivery,) = await hooks.wait_for(failing, DeliveryStatus.FAILED)
    assert delivery.next_attempt_at is None

    async def reasons() -> list[str | None]:
        return [(await hooks.endpoint(each)).disabled_reason for each in (failing, gone)]

    async def are_disabled() -> bool:
        return all(await reasons())

    assert await wait_until(are_disabled, PATIENCE), await reasons()
    assert await reasons() == ["It has failed for more than 5 days.", "It responded with HTTP status 410, Gone."]


async def test_of_a_deleted_session_only_its_deletion_is_delivered(hooks: Hooks, receiver: WebhookReceiver) -> None:
    session_id = await hooks.session()
    receiver.respond = lambda _: 500
    endpoint, _ = await hooks.create(receiver.url(), session_id=session_id)
    await hooks.change(session_id, events.status_running(), IDLE)
    assert await receiver.wait_until(lambda: len(receiver.received) >= 2)
    receiver.respond = lambda _: 200
    await hooks.engine.cell.delete(hooks.principal, session_id)
    hooks.wake()
    assert await receiver.wait_until(lambda: "session.deleted" in received_types(receiver))
    await hooks.wait_for(endpoint, DeliveryStatus.DELIVERED)
    await WebhookExpiry(hooks.engine.cell.database, timedelta(days=7)).run()
    with pytest.raises(NotFound):
        await hooks.endpoint(endpoint)


async def test_a_message_for_slack_has_a_link(hooks: Hooks, receiver: WebhookReceiver) -> None:
    await hooks.create(receiver.url(), "session.status_terminated", webhook_format=WebhookFormat.SLACK)
    session_id = await hooks.session()
    async with hooks.engine.cell.units.unit(hooks.principal, None) as unit:
        await unit.update_session(
            hooks.principal, session_id, lambda found: replace(found, title="<!channel> & | friends")
        )
    ended = events.Event(events.STATUS_TERMINATED, {"outcome": "failed", "reason": "x", "ended_by": None})
    await hooks.change(session_id, ended)
    assert await receiver.wait_until(lambda: bool(receiver.accepted))
    message = receiver.accepted[0].payload
    link = f"https://footplate.example.com/s/{session_id}"
    assert message["text"] == f"<{link}|&lt;!channel&gt; &amp; / friends> has ended: failed"
    assert message["blocks"][0]["text"] == {"type": "mrkdwn", "text": message["text"]}


async def test_redirects_are_not_followed_and_no_trick_reaches_a_private_address(
    receiver: WebhookReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver.respond = lambda _: (307, {"location": receiver.url("/elsewhere")})
    allowed = WebhookSender(LOOPBACK_ACCESS, max_seconds=5)
    result = await allowed.send(receiver.url("/redirects"), "whdl_1", "{}", ["whsec_AAAA"])
    assert (result.status_code, result.is_success) == (307, False)
    assert "Redirects are not followed." in (result.error or "")
    assert [each.path for each in receiver.received] == ["/redirects"]
    await allowed.aclose()
    names = TrickNames()
    monkeypatch.setattr(address_check, "_NAME_LOOKUP", NameLookup(names.getaddrinfo))
    access = WebhookAccess(AddressPolicy(), allow_http=True)
    sender = WebhookSender(access, max_seconds=3)
    receiver.respond = lambda _: 200
    urls = trick_urls(receiver.port)
    assert len(urls) >= 60
    for url in urls:
        result = await sender.send(url, "whdl_1", "{}", ["whsec_AAAA"])
        assert not result.is_success, url
        assert result.status_code is None, url
    rebound = f"http://{address_tricks.REBINDING_NAME}:{receiver.port}/trick"
    first = asyncio.create_task(sender.send(rebound, "whdl_1", "{}", ["whsec_AAAA"]))  # connects to a public address
    await asyncio.sleep(0.2)
    assert names.rebinding_lookups == 1
    second = await sender.send(rebound, "whdl_1", "{}", ["whsec_AAAA"])
    assert "not a public internet address" in (second.error or "")
    assert not (await first).is_success
    assert len(receiver.received) == 1
    await sender.aclose()
    with pytest.raises(InvalidRequest, match="must use https"):
        WebhookAccess(AddressPolicy()).check_url("http://hooks.example.com/")
