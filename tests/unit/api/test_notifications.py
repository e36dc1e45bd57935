"""Routes of notifications: everyone manages the own ones alone, and what a browser cannot have is refused."""

from dataclasses import replace

import httpx2
import pytest
from bench.support.push.push_service import BrowserKeys

from footplate.domain.organisations.principals import Principal

from .conftest import Api, make_client

SETTINGS = "/v1/notification_settings"
PATH = "/v1/push_subscriptions"
QUIET = {"start": "22:00", "end": "07:30", "timezone": "Europe/Berlin"}
VIEWER = Principal("org_a", "key_v", "victor", frozenset({"viewer"}))


def subscription(url: str = "https://push.example.com/abc") -> dict[str, object]:
    return {"endpoint": url, "keys": BrowserKeys("/").to_json()}


async def test_a_browser_is_subscribed_tested_and_removed(http: httpx2.AsyncClient, api: Api) -> None:
    created = (await http.post(PATH, json=subscription(), headers={"user-agent": "Firefox/130"})).json()
    assert (created["type"], created["state"], created["user_agent"]) == ("push_subscription", "active", "Firefox/130")
    assert created["endpoint"] == "https://push.example.com/abc"
    assert not {"keys", "auth", "p256dh"} & set(created)
    assert (api.world.notifications.new[0].api_key_id is None) is not (
        api.world.notifications.new[0].browser_session_id is None
    )
    assert (await http.get(PATH)).json()["data"] == [created]
    assert (await http.post(f"{PATH}/{created['id']}/test")).json()["type"] == "push_test"
    removed = (await http.delete(f"{PATH}/{created['id']}")).json()
    assert removed == {"id": created["id"], "type": "push_subscription_deleted"}
    assert (await http.delete(f"{PATH}/{created['id']}")).status_code == 404
    assert api.world.webhooks.woken == ["org_a"] * 2


async def test_others_neither_see_nor_change_a_subscription(http: httpx2.AsyncClient, api: Api) -> None:
    created = (await http.post(PATH, json=subscription())).json()
    async with make_client(api.app, "secret-c") as other:
        assert (await other.get(PATH)).json()["data"] == []
        assert (await other.delete(f"{PATH}/{created['id']}")).status_code == 404
        assert (await other.post(f"{PATH}/{created['id']}/test")).status_code == 404
        await other.post(SETTINGS, json={"enabled": False})
    assert (await http.get(SETTINGS)).json()["enabled"] is True


async def test_a_viewer_can_be_notified_and_a_key_of_a_project_cannot(api: Api) -> None:
    api.keys.known["secret-v"] = VIEWER
    api.keys.known["secret-p"] = replace(VIEWER, project_ids=frozenset({"proj_1"}))
    async with make_client(api.app, "secret-v") as viewer:
        assert (await viewer.post(PATH, json=subscription())).status_code == 200
        assert (await viewer.post(SETTINGS, json={"quiet_hours": QUIET})).status_code == 200
    async with make_client(api.app, "secret-p") as restricted:
        refused = await restricted.post(PATH, json=subscription())
    assert (refused.status_code, "restricted to projects" in refused.text) == (403, True)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (subscription("http://push.example.com/a"), "endpoint: must use https"),
        (subscription("https://127.0.0.1/a"), "endpoint: 127.0.0.1 is not a public internet address"),
        (subscription() | {"keys": {"p256dh": "AAAA", "auth": "A" * 22}}, "must be a point of the curve"),
        (subscription() | {"keys": {"p256dh": "?", "auth": "A" * 22}}, "must be a point of the curve"),
        (subscription() | {"keys": {**BrowserKeys("/").to_json(), "auth": "AAAA"}}, "must be 16 bytes"),
        ({"endpoint": "https://push.example.com/a"}, "keys"),
    ],
)
async def test_what_no_browser_sends_is_refused(http: httpx2.AsyncClient, body: object, problem: str) -> None:
    response = await http.post(PATH, json=body)
    assert (response.status_code, problem in response.json()["error"]["message"]) == (400, True), response.text


async def test_settings_are_changed_one_by_one(http: httpx2.AsyncClient, api: Api) -> None:
    first = (await http.get(SETTINGS)).json()
    key = api.world.notifications.key
    assert first == {"type": "notification_settings", "enabled": True, "quiet_hours": None, "public_key": key.public}
    assert (await http.post(SETTINGS, json={"quiet_hours": QUIET})).json()["quiet_hours"] == QUIET
    assert (await http.post(SETTINGS, json={"enabled": False})).json() | {"public_key": ""} == {
        "type": "notification_settings",
        "enabled": False,
        "quiet_hours": QUIET,
        "public_key": "",
    }
    assert (await http.post(SETTINGS, json={"quiet_hours": None})).json()["quiet_hours"] is None
    assert key.private not in (await http.get(SETTINGS)).text


@pytest.mark.parametrize(
    ("quiet", "problem"),
    [
        (QUIET | {"end": "22:00"}, "start and end are the same time"),
        (QUIET | {"timezone": "Europe/Nowhere"}, "there is no time zone 'Europe/Nowhere'"),
        (QUIET | {"start": "24:00"}, "quiet_hours.start"),
        (QUIET | {"start": "9:00"}, "quiet_hours.start"),
    ],
)
async def test_impossible_quiet_hours_are_refused(http: httpx2.AsyncClient, quiet: object, problem: str) -> None:
    response = await http.post(SETTINGS, json={"quiet_hours": quiet})
    assert (response.status_code, problem in response.json()["error"]["message"]) == (400, True), response.text
