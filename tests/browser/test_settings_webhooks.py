"""Settings, webhooks: the secret that is shown once, tests, pauses, deliveries and replays."""

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from bench.support.browser.dashboard_window import PHONE, Workplace
from bench.support.cluster import Cluster, open_cluster
from bench.support.webhooks.receiver import WebhookReceiver
from playwright.async_api import Route, expect

from footplate.domain.sessions.webhook_events import DESCRIPTIONS
from footplate.stack import Stack

WEBHOOKS = "/settings?section=webhooks"
SETTINGS = {"FOOTPLATE_WEBHOOK_HTTP": "true", "FOOTPLATE_WEBHOOK_ALLOW": "127.0.0.1"}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def cluster(stack: Stack) -> AsyncIterator[Cluster]:
    """One that may send to this machine."""
    async with open_cluster(stack=stack, environment=SETTINGS) as running:
        yield running


async def _create(workplace: Workplace, url: str, **fields: Any) -> str:
    body = {"url": url, "event_types": ["session.created"], **fields}
    return str((await workplace.client.sdk.post("/v1/webhook_endpoints", body=body, cast_to=dict[str, Any]))["id"])


async def _read(workplace: Workplace, endpoint_id: str) -> dict[str, Any]:
    return await workplace.client.sdk.get(f"/v1/webhook_endpoints/{endpoint_id}", cast_to=dict[str, Any])


@pytest.mark.action("settings.webhook-new")
async def test_a_webhook_is_created_and_its_secret_is_shown_once(workplace: Workplace) -> None:
    workplace.expect("400")
    window = await workplace.sign_in()
    page = window.page
    await window.open_page(WEBHOOKS)
    await expect(page.get_by_text("A webhook sends events to your own server, or to a chat")).to_be_visible()
    await page.keyboard.press("c")
    offered = await page.get_by_role("checkbox").evaluate_all("all => all.map((one) => one.closest('label').innerText)")
    assert {one.strip() for one in offered[1:]} == {*DESCRIPTIONS}
    await page.get_by_label("Address").fill("hooks.example.com")
    await page.get_by_role("checkbox", name="session.requires_action").click()
    await page.get_by_role("checkbox", name="session.status_terminated").click()
    await page.keyboard.press("Control+Enter")
    await expect(page.get_by_text("Write a full address")).to_be_visible()
    await expect(page.get_by_text("Choose an event, or all of them.")).to_be_visible()
    await page.get_by_role("checkbox", name="batch.ended").click()
    await page.get_by_label("Address").fill("https://10.0.0.1/hook")
    await page.keyboard.press("Control+Enter")
    await expect(page.get_by_role("alert").filter(has_text="FOOTPLATE_WEBHOOK_ALLOW")).to_be_visible()
    await page.get_by_label("Address").fill("https://hooks.example.com/footplate")
    await page.get_by_role("checkbox", name="Keep the order").click()
    await page.keyboard.press("Control+Enter")
    dialog = page.get_by_role("dialog", name="Copy the secret")
    secret = await dialog.get_by_text(re.compile("^whsec_")).inner_text()
    await dialog.get_by_role("button", name="Copy the secret").click()
    assert await page.evaluate("navigator.clipboard.readText()") == secret
    await dialog.get_by_role("button", name="I have copied it").click()
    await expect(page.get_by_role("heading", name="https://hooks.example.com/footplate")).to_be_visible()
    found = re.search(r"item=(whep_[^&]+)", page.url)
    assert found is not None
    stored = await _read(workplace, found[1])
    assert (stored["event_types"], stored["ordered"], stored["session_id"]) == (["batch.ended"], True, None)
    await page.reload()
    await expect(page.get_by_role("heading", name="https://hooks.example.com/footplate")).to_be_visible()
    assert secret not in await page.content()


@pytest.mark.action("settings.webhook-test", "settings.webhook-replay", "settings.webhook-failed")
@pytest.mark.timing
async def test_a_test_event_arrives_and_is_sent_again(workplace: Workplace) -> None:
    async with WebhookReceiver() as receiver:
        endpoint = await _create(workplace, receiver.url("/hook"))
        window = await workplace.sign_in()
        page = window.page
        await window.open_page(f"{WEBHOOKS}&item={endpoint}")
        await expect(page.get_by_text("Nothing was sent yet.")).to_be_visible()
        await page.keyboard.press("t")
        row = page.get_by_role("list", name="Deliveries").get_by_role("listitem")
        await expect(row).to_contain_text("webhook.test")
        await expect(row).to_contain_text("delivered")
        await expect(row).to_contain_text("status 200")
        await page.keyboard.press("j")
        await page.keyboard.press("Enter")
        await expect(row.get_by_role("region", name="Payload")).to_contain_text('"type": "webhook.test"')
        await page.keyboard.press("r")
        await expect(page.get_by_text("The event is sent again")).to_be_visible()
        assert await receiver.wait_until(lambda: len(receiver.accepted) == 2)
        assert len({webhook.id for webhook in receiver.accepted}) == 1
        receiver.respond = lambda _: 503
        await page.get_by_role("button", name="Send a test").click()
        await expect(page.get_by_text("No delivery has succeeded since")).to_be_visible()
        await expect(row.first).to_contain_text("pending")
        await expect(row.first).to_contain_text("503")
        await window.run_action("Show only failed deliveries")
        await expect(page.get_by_text("No delivery is in this state.")).to_be_visible()
        await expect(page).to_have_url(re.compile("status=failed"))
        await window.open_page(WEBHOOKS)
        listed = page.get_by_role("list", name="Webhooks").get_by_role("listitem")
        await expect(listed).to_contain_text("failing")
        await expect(listed).to_contain_text("pending")


@pytest.mark.action("settings.webhook-edit", "settings.webhook-pause", "settings.webhook-rotate")
async def test_a_webhook_is_edited_paused_and_gets_a_new_secret(workplace: Workplace) -> None:
    endpoint = await _create(workplace, "https://hooks.example.com/a", description="Old")
    window = await workplace.sign_in()
    page = window.page
    await window.open_page(f"{WEBHOOKS}&selected={endpoint}")
    await expect(page.get_by_role("list", name="Webhooks").get_by_role("listitem")).to_contain_text("active")
    await page.keyboard.press("e")
    await page.get_by_label("Description").fill("For the team")
    await page.get_by_label("Which events").click()
    await page.get_by_role("option", name="All, also types of later versions").click()
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("For the team")).to_be_visible()
    stored = await _read(workplace, endpoint)
    assert (stored["description"], stored["event_types"]) == ("For the team", [])
    assert stored["url"] == "https://hooks.example.com/a"
    await page.keyboard.press("p")
    await expect(page.get_by_text("paused", exact=True)).to_be_visible()
    await expect(page.get_by_role("button", name="Send a test")).to_be_disabled()
    await page.get_by_role("button", name="Enable").click()
    await expect(page.get_by_text("active", exact=True)).to_be_visible()
    assert (await _read(workplace, endpoint))["disabled_at"] is None
    await page.keyboard.press("Shift+R")
    await page.get_by_label("Hours for which the old secret stays valid").fill("200")
    await page.get_by_role("button", name="Replace the secret").click()
    await expect(page.get_by_text("Write a whole number of hours from 0 to 168.")).to_be_visible()
    await page.get_by_label("Hours for which the old secret stays valid").fill("2")
    await page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Copy the secret")
    await expect(dialog.get_by_text(re.compile("^whsec_"))).to_be_visible()
    await expect(dialog.get_by_text("The old secret is valid too until")).to_be_visible()
    await dialog.get_by_role("button", name="I have copied it").click()
    assert (await _read(workplace, endpoint))["old_secret_expires_at"] is not None
    await expect(page.get_by_text("Old secret")).to_be_visible()


@pytest.mark.action("settings.webhook-delete")
async def test_a_webhook_is_deleted_after_a_confirmation(workplace: Workplace) -> None:
    endpoint = await _create(workplace, "https://hooks.example.com/a")
    window = await workplace.sign_in()
    page = window.page
    await window.open_page(f"{WEBHOOKS}&item={endpoint}")
    await expect(page.get_by_role("heading", name="https://hooks.example.com/a")).to_be_visible()
    await page.keyboard.press("Shift+D")
    await expect(page.get_by_text("receives nothing any more")).to_be_visible()
    await page.get_by_role("button", name="Cancel").click()
    assert (await _read(workplace, endpoint))["id"] == endpoint
    await page.keyboard.press("Shift+D")
    await page.get_by_role("button", name="Delete", exact=True).click()
    await expect(page.get_by_text("A webhook sends events to your own server, or to a chat")).to_be_visible()


async def test_hostile_addresses_and_errors_on_a_phone(workplace: Workplace) -> None:
    hostile = "https://hooks.example.com/<img src=x onerror=window.__executed=1>/" + "x" * 400
    endpoint = await _create(workplace, hostile.replace(" ", "%20"), description="safe \u202egpj.exe")
    window = await workplace.sign_in(size=PHONE)
    page = window.page
    await window.open_page(WEBHOOKS)
    await page.get_by_role("list", name="Webhooks").get_by_role("link").tap()
    await expect(page.get_by_text("U+202E")).to_be_visible()
    await page.get_by_role("button", name="Send a test").tap()
    row = page.get_by_role("list", name="Deliveries").get_by_role("listitem")
    await expect(row).to_contain_text("pending")
    await row.get_by_role("button").first.tap()
    await expect(row.get_by_role("region", name="Payload")).to_contain_text(endpoint)
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert await page.evaluate("window.__executed") is None


async def test_a_failed_request_is_shown_and_tried_again(workplace: Workplace) -> None:
    workplace.expect("500")
    endpoint = await _create(workplace, "https://hooks.example.com/a")
    window = await workplace.sign_in()
    page = window.page

    async def fail(route: Route) -> None:
        await route.fulfill(status=500, json={})

    await page.route("**/deliveries?*", fail)
    await window.open_page(f"{WEBHOOKS}&item={endpoint}")
    await expect(page.get_by_text("The deliveries could not be loaded")).to_be_visible()
    await page.unroute("**/deliveries?*")
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_text("Nothing was sent yet.")).to_be_visible()


async def test_webhooks_of_those_who_may_not_manage_all(workplace: Workplace) -> None:
    await _create(workplace, "https://hooks.example.com/a")
    session = await workplace.client.session(await workplace.client.agent(), title="Mine")
    viewer = await workplace.sign_in(key=await workplace.create_viewer_key())
    await viewer.open_page(WEBHOOKS)
    await expect(viewer.page.get_by_text("Webhooks are hidden from you")).to_be_visible()
    post = workplace.client.sdk.post
    member = await post("/v1/members", body={"name": "op", "roles": ["operator"]}, cast_to=dict[str, Any])
    body = {"name": "op", "member_id": member["id"], "roles": ["operator"]}
    key = (await post("/v1/api_keys", body=body, cast_to=dict[str, Any]))["secret"]
    window = await workplace.sign_in(key=str(key))
    page = window.page
    await window.open_page(f"{WEBHOOKS}&item=new")
    await expect(page.get_by_text("Only administrators can choose all sessions.")).to_be_visible()
    await page.get_by_label("Address").fill("https://hooks.example.com/mine")
    await page.get_by_label("Session", exact=True).fill(session)
    await page.keyboard.press("Control+Enter")
    await page.get_by_role("button", name="I have copied it").click()
    await expect(page.get_by_role("link", name=session)).to_be_visible()
    await page.get_by_role("button", name="All webhooks").click()
    await expect(page.get_by_role("list", name="Webhooks").get_by_role("listitem")).to_have_count(1)
