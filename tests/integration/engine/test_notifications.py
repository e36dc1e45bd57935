"""Notifications with real PostgreSQL, Temporal and HTTP: a push service on this machine decrypts what is sent."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest
import pytest_asyncio
from bench.support.push.push_service import BrowserKeys, PushService
from tests.integration.engine.cell import Engine
from tests.integration.store.test_approvals import decision_on, park, use

from footplate.domain import ids
from footplate.domain.errors import Conflict, NotFound
from footplate.domain.network.address_policy import AddressPolicy
from footplate.domain.organisations.principals import Principal, PrincipalKind
from footplate.domain.organisations.sign_in import Browser
from footplate.domain.organisations.visibility import Audience, Visibility
from footplate.domain.organisations.webhooks import WebhookAccess, WebhookFormat
from footplate.domain.pagination import Page
from footplate.domain.sessions.events import Event
from footplate.domain.sessions.inbox import InboxUpdate
from footplate.domain.sessions.notifications import (
    MAX_SUBSCRIPTIONS,
    NewPushSubscription,
    NotificationSettings,
    PushSubscription,
    QuietHours,
)
from footplate.domain.sessions.turns import TurnOutcome, TurnStatus
from footplate.engine.webhooks.endpoint_waker import EndpointWaker
from footplate.stack.orphan_processes import wait_until
from footplate.store.resources.api_keys import ApiKeys
from footplate.store.resources.notifications import PushKeys, PushSubscriptions
from footplate.store.resources.sign_in.browser_sessions import BrowserSessionStore
from footplate.store.resources.sign_in.failures import SignInFailures
from footplate.store.resources.webhooks import WebhookExpiry, Webhooks

pytestmark = pytest.mark.timing

LOOPBACK_ACCESS = WebhookAccess(AddressPolicy(["127.0.0.1"]), allow_http=True)
FAILED = TurnOutcome(status=TurnStatus.FAILED, error_type="unknown_error", error_message="The model is gone.")
NEVER = 1.5
"""Seconds in which a message would have arrived."""


@dataclass(slots=True)
class Push:
    """One member with a browser, in an organisation of its own."""

    engine: Engine
    waker: EndpointWaker
    service: PushService
    admin: Principal
    member: Principal
    key_id: str
    browser: BrowserKeys

    async def subscribe(self, browser: BrowserKeys | None = None, **replaced: Any) -> PushSubscription:
        wanted = self.service.subscription(browser or self.browser)
        new = NewPushSubscription(
            url=wanted["endpoint"], **wanted["keys"], user_agent="Firefox/130", api_key_id=self.key_id
        )
        principal = replaced.pop("principal", self.member)
        saved: PushSubscription = await self.change(
            lambda unit: unit.save_push_subscription(principal, replace(new, **replaced))
        )
        return saved

    async def change(self, work: Callable[[Any], Awaitable[Any]]) -> Any:
        async with self.engine.cell.units.unit(self.admin, None) as unit:
            result = await work(unit)
        self.wake()
        return result

    def wake(self) -> None:
        self.waker.endpoints_changed(self.admin.organisation)

    async def ask(self) -> tuple[str, Event]:
        """Lets a call of a new session wait for approval. Returns the session and the call."""
        cell = self.engine.cell
        session_id, call = await cell.session(self.admin, "Go."), use(ids.new_id("call"))
        await park(cell, await cell.claim(session_id, self.admin), call)
        self.wake()
        return session_id, call

    async def fail(self) -> str:
        cell = self.engine.cell
        session_id = await cell.session(self.admin, "Go.")
        claim = await cell.claim(session_id, self.admin)
        await cell.turns.finish(claim, FAILED)
        self.wake()
        return claim.turn_id

    async def arrived(self, count: int, browser: BrowserKeys | None = None, seconds: float = 30) -> list[str]:
        """The items of which the browser was told, after it was told of this many."""
        messages = await self.service.wait_for(browser or self.browser, count, seconds)
        assert not self.service.faults
        return [str(each.content["id"]) for each in messages]

    async def subscriptions(self) -> list[PushSubscription]:
        return [*await self.engine.cell.reads.push_subscriptions(self.member)]

    async def set_quiet(self, quiet: QuietHours | None, *, enabled: bool = True) -> None:
        await self.change(
            lambda unit: unit.update_notification_settings(self.member, lambda _: NotificationSettings(enabled, quiet))
        )


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def running(idle_engine: Engine) -> AsyncIterator[EndpointWaker]:
    async with idle_engine.with_own_queue().worker() as worker:
        yield worker.notifiers.endpoint_waker


@pytest_asyncio.fixture(loop_scope="session")
async def push(idle_engine: Engine, running: EndpointWaker) -> AsyncIterator[Push]:
    database, units = idle_engine.cell.database, idle_engine.cell.units
    keys, organisation = ApiKeys(database), ids.new_id("o").replace("_", "-")
    admin = await keys.authenticate(await keys.create_key(organisation, "first", ["admin"]))
    async with units.unit(admin, None) as unit:
        member = await unit.create_member(admin, kind=PrincipalKind.PERSON, name="Ann", roles=["operator"])
        key, _ = await unit.create_api_key(
            admin, name="laptop", member_id=member.id, roles=["operator"], expires_at=None
        )
    ann = Principal(organisation, member.id, "Ann", frozenset({"operator"}))
    async with PushService() as service:
        service.public_key = (await PushKeys(database, None).load()).public
        yield Push(idle_engine, running, service, admin, ann, key.id, service.add_browser("/ann"))


async def test_what_needs_a_person_arrives_encrypted_without_the_call(push: Push) -> None:
    await push.ask()
    await push.subscribe()
    session_id, call = await push.ask()
    failed = await push.fail()
    assert {*await push.arrived(2)} == {call.id, failed}
    found = {each.content["id"]: each for each in push.service.accepted(push.browser)}
    assert found[call.id].content == {
        "type": "inbox.item",
        "id": call.id,
        "kind": "approval",
        "session_id": session_id,
        "title": "bash needs approval",
        "body": found[call.id].content["body"],
    }
    assert "make" not in str(found[call.id].content)
    assert found[failed].content["title"] == "A turn failed"
    assert "The model is gone" not in str(found[failed].content)
    assert len({each.topic for each in found.values()}) == 2
    assert found[failed].claims["sub"] == "mailto:operator@example.com"
    push.wake()
    assert len(await push.arrived(3, seconds=NEVER)) == 2

    async def is_recorded() -> bool:
        return (await push.subscriptions())[0].last_success_at is not None

    assert await wait_until(is_recorded, 30)


async def test_every_browser_of_a_member_receives_what_that_member_can_see(push: Push) -> None:
    phone, stranger = push.service.add_browser("/phone"), push.service.add_browser("/stranger")
    await push.subscribe()
    await push.subscribe(phone)
    await push.subscribe(stranger, principal=push.admin)
    cell = push.engine.cell
    hidden = await cell.session(push.admin, "Go.")
    private = Audience(Visibility.PRIVATE)
    await push.change(
        lambda unit: unit.update_session(push.admin, hidden, lambda found: replace(found, audience=private))
    )
    secret = use("secret")
    await park(cell, await cell.claim(hidden, push.admin), secret)
    push.wake()
    assert await push.arrived(1, stranger) == [secret.id]
    _, call = await push.ask()
    assert {*await push.arrived(2, stranger)} == {secret.id, call.id}
    assert await push.arrived(1) == [call.id]
    assert await push.arrived(1, phone) == [call.id]


async def test_what_is_assigned_to_others_or_decided_is_not_sent(push: Push) -> None:
    await push.subscribe()
    push.service.respond = lambda _path: 503
    session_id, call = await push.ask()
    _, other = await push.ask()
    assert await wait_until(lambda: _is(push.service.received >= 2), 30)
    await push.engine.cell.send(push.admin, session_id, decision_on(call))

    def assign(member_id: str) -> Callable[[Any], Awaitable[Any]]:
        update = InboxUpdate(assignee_id=member_id, changes_assignee=True)
        return lambda unit: unit.update_inbox_item(push.admin, other.id, update)

    await push.change(assign(push.admin.id))
    push.service.respond = lambda _path: 201
    assert await push.arrived(1, seconds=3 * NEVER) == []
    await push.change(assign(push.member.id))
    assert await push.arrived(1) == [other.id]


async def _is(value: bool) -> bool:  # noqa: FBT001 - a condition of wait_until
    return value


async def test_a_failed_delivery_is_repeated_with_the_same_topic_and_hinders_no_other_browser(push: Push) -> None:
    phone = push.service.add_browser("/phone")
    await push.subscribe()
    await push.subscribe(phone)
    push.service.respond = lambda path: 503 if path == "/ann" else 201
    _, call = await push.ask()
    assert await push.arrived(1, phone) == [call.id]
    count = push.service.received

    async def is_failing() -> bool:
        states = {each.url.rpartition("/")[2]: each for each in await push.subscriptions()}
        return (states["ann"].state, states["phone"].state) == ("failing", "active")

    assert await wait_until(is_failing, 30)
    assert await wait_until(lambda: _is(push.service.received > count), 30)
    push.service.respond = lambda _path: 201
    assert await push.arrived(1) == [call.id]
    assert await push.arrived(2, seconds=NEVER) == [call.id]


@pytest.mark.parametrize("status", [404, 410])
async def test_a_browser_that_the_push_service_does_not_know_any_more_is_removed(push: Push, status: int) -> None:
    await push.subscribe()
    push.service.respond = lambda _path: status
    await push.ask()

    async def is_removed() -> bool:
        return await push.subscriptions() == []

    assert await wait_until(is_removed, 30)


async def test_in_quiet_hours_nothing_is_sent_and_what_still_waits_is_sent_afterwards(push: Push) -> None:
    phone = push.service.add_browser("/admin")
    await push.subscribe(phone, principal=push.admin)
    subscription = await push.subscribe()
    now = datetime.now(UTC)
    quiet = QuietHours(_clock(now - timedelta(hours=1)), _clock(now + timedelta(hours=1)), "UTC")
    await push.set_quiet(quiet)
    session_id, decided = await push.ask()
    _, open_call = await push.ask()
    assert {*await push.arrived(2, phone)} == {decided.id, open_call.id}
    assert await push.arrived(1, seconds=NEVER) == []
    test = await push.change(lambda unit: unit.test_push_subscription(push.member, subscription.id))
    assert await push.arrived(1) == [test.id]
    async with push.engine.cell.database.connection() as connection:
        waits = await connection.fetch(
            "select next_attempt_at, retry_until, attempts from webhook_deliveries"
            " where endpoint_id = $1 and status = 'pending' and item_id is not null",
            subscription.id,
        )
    end = datetime.combine((now + timedelta(hours=1)).date(), quiet.end, UTC)
    assert [(each["next_attempt_at"], each["attempts"]) for each in waits] == [(end, 0)] * 2
    assert all(each["retry_until"] > end for each in waits)
    await push.engine.cell.send(push.admin, session_id, decision_on(decided))
    await push.set_quiet(None)
    assert await push.arrived(2) == [test.id, open_call.id]
    assert len(await push.arrived(3, seconds=NEVER)) == 2


async def test_a_sender_with_earlier_quiet_hours_postpones_nothing(push: Push) -> None:
    """The sender has read the quiet hours when the member turns them off."""
    subscription = await push.subscribe()
    now = datetime.now(UTC)
    await push.set_quiet(QuietHours(_clock(now - timedelta(hours=1)), _clock(now + timedelta(hours=1)), "UTC"))
    database, store = push.engine.cell.database, PushSubscriptions(push.engine.cell.database)
    target = await store.load_push_target(push.member.organisation, subscription.id)
    assert target is not None
    _, call = await push.ask()
    async with push.engine.cell.units.unit(push.admin, None) as unit:
        await unit.update_notification_settings(push.member, lambda _: NotificationSettings())
        await store.create_item_deliveries(target)
        pending = (await Webhooks(database).next_deliveries(target.endpoint, 1))[0]
        postponing = asyncio.create_task(store.postpone(target, pending.delivery, now + timedelta(hours=1)))
        assert await asyncio.wait({postponing}, timeout=0.5) == (set(), {postponing})
    await postponing
    push.wake()
    assert await push.arrived(1) == [call.id]


def _clock(now: datetime) -> time:
    return now.time().replace(second=0, microsecond=0)


async def test_changes_at_the_same_time_are_all_saved(push: Push) -> None:
    units, quiet = push.engine.cell.units, QuietHours(time(22), time(7), "UTC")
    async with units.unit(push.member, None) as unit:
        await unit.update_notification_settings(push.member, lambda old: replace(old, is_enabled=False))
        other = asyncio.create_task(
            push.change(
                lambda unit: unit.update_notification_settings(push.member, lambda old: replace(old, quiet_hours=quiet))
            )
        )
        assert await asyncio.wait({other}, timeout=0.5) == (set(), {other})
    await other
    saved = await push.engine.cell.reads.notification_settings(push.member)
    assert saved == NotificationSettings(is_enabled=False, quiet_hours=quiet)


async def test_who_has_turned_notifications_off_receives_only_tests(push: Push) -> None:
    subscription = await push.subscribe()
    await push.set_quiet(None, enabled=False)
    await push.ask()
    test = await push.change(lambda unit: unit.test_push_subscription(push.member, subscription.id))
    assert await push.arrived(2, seconds=NEVER) == [test.id]


async def test_after_a_revocation_nothing_is_sent(push: Push) -> None:
    phone = push.service.add_browser("/phone")
    removed, by_key = await push.subscribe(), await push.subscribe(phone)
    _, call = await push.ask()
    assert await push.arrived(1, phone) == await push.arrived(1) == [call.id]
    await push.change(lambda unit: unit.delete_push_subscription(push.member, removed.id))
    with pytest.raises(NotFound):
        await push.change(lambda unit: unit.delete_push_subscription(push.admin, by_key.id))
    await push.change(lambda unit: unit.revoke_api_key(push.admin, push.key_id))
    received = push.service.received
    await push.ask()
    await asyncio.sleep(NEVER)
    assert push.service.received == received
    assert [each.state for each in await push.subscriptions()] == ["signed_out"]


async def test_who_is_disabled_receives_nothing_and_neither_does_a_successor(push: Push) -> None:
    await push.subscribe()
    push.service.respond = lambda _path: 503
    await push.ask()
    assert await wait_until(lambda: _is(push.service.received >= 1), 30)
    await push.change(lambda unit: unit.update_member(push.admin, push.member.id, roles=None, disabled=True))
    push.service.respond = lambda _path: 201
    await push.ask()
    assert await push.arrived(1, seconds=3 * NEVER) == []


async def test_a_browser_receives_nothing_after_it_signed_out_until_it_signs_in_again(push: Push) -> None:
    database = push.engine.cell.database
    keys = ApiKeys(database)
    sessions = BrowserSessionStore(database, keys, SignInFailures(database, push.admin.organisation, limit=20))
    async with push.engine.cell.units.unit(push.admin, None) as unit:
        _, secret = await unit.create_api_key(
            push.admin, name="phone", member_id=push.member.id, roles=["operator"], expires_at=None
        )

    async def sign_in() -> tuple[Principal, str]:
        principal, cookie = await sessions.start_with_key(secret, Browser.describe("10.1.2.3", "Firefox/130"))
        profile = await sessions.load_profile(principal, cookie)
        await push.subscribe(principal=principal, api_key_id=None, browser_session_id=profile.session_id)
        return principal, cookie

    _, cookie = await sign_in()
    _, call = await push.ask()
    assert await push.arrived(1) == [call.id]
    await sessions.end_session_of(cookie)
    assert [each.state for each in await push.subscriptions()] == ["signed_out"]
    _, missed = await push.ask()
    assert await push.arrived(2, seconds=NEVER) == [call.id]
    await sign_in()
    assert await push.arrived(2) == [call.id, missed.id]
    assert len(await push.subscriptions()) == 1


async def test_a_browser_belongs_to_who_subscribed_last(push: Push) -> None:
    first = await push.subscribe()
    push.service.respond = lambda _path: 503
    await push.ask()
    assert await wait_until(lambda: _is(push.service.received >= 1), 30)
    second = await push.subscribe(principal=push.admin)
    assert first.id != second.id
    assert await push.subscriptions() == []
    push.service.respond = lambda _path: 201
    assert await push.arrived(1, seconds=NEVER) == [], "what was pending for another member is not sent"
    again = await push.subscribe(principal=push.admin)
    assert again.id == second.id


async def test_a_lost_wake_signal_is_found_by_the_sweep(push: Push) -> None:
    await push.subscribe()
    await asyncio.sleep(0.5)
    cell = push.engine.cell
    session_id, call = await cell.session(push.admin, "Go."), use("a")
    await park(cell, await cell.claim(session_id, push.admin), call)  # nothing wakes the subscription
    for _ in range(20):
        await push.waker.run()
        if await push.arrived(1, seconds=1):
            break
    assert await push.arrived(1) == [call.id]


async def test_subscriptions_are_no_webhook_endpoints_and_limited_in_number(push: Push) -> None:
    subscription = await push.subscribe()
    reads = push.engine.cell.reads
    assert await reads.webhook_endpoints(push.admin, Page(limit=10)) == []
    with pytest.raises(NotFound):
        await reads.webhook_endpoint(push.admin, subscription.id)
    with pytest.raises(NotFound):
        await push.change(lambda unit: unit.delete_webhook_endpoint(push.admin, subscription.id))
    # A webhook may have the same address.
    await push.change(
        lambda unit: unit.create_webhook_endpoint(
            push.admin,
            url=subscription.url,
            session_id=None,
            description=None,
            types=["session.deleted"],
            webhook_format=WebhookFormat.STANDARD,
            ordered=False,
        )
    )
    for number in range(MAX_SUBSCRIPTIONS - 1):
        await push.subscribe(push.service.add_browser(f"/{number}"))
    with pytest.raises(Conflict, match=f"the limit is {MAX_SUBSCRIPTIONS}"):
        await push.subscribe(push.service.add_browser("/more"))
    assert (await push.subscribe()).id == subscription.id, "a known browser can still be renewed"


async def test_what_is_no_longer_needed_is_deleted(push: Push) -> None:
    kept = await push.subscribe()
    gone = await push.subscribe(push.service.add_browser("/old"), api_key_id=None, browser_session_id="bses_gone")
    assert gone.state == "signed_out"
    _, call = await push.ask()
    assert await push.arrived(1) == [call.id]
    await WebhookExpiry(push.engine.cell.database, timedelta()).run()
    assert [each.id for each in await push.subscriptions()] == [kept.id]
    push.wake()
    assert await push.arrived(2, seconds=NEVER) == [call.id], "its delivery is kept for longer than items are sent"


async def test_all_processes_have_the_same_key(push: Push) -> None:
    database = push.engine.cell.database
    loaded = await asyncio.gather(*(PushKeys(database, None).load() for _ in range(8)))
    assert {key.public for key in loaded} == {push.service.public_key}
    own = await PushKeys(database, loaded[0].private).load()
    assert own == loaded[0]
