"""Routes of webhook endpoints: who may create which, what is refused, and that secrets are shown once."""

import httpx2
import pytest

from .conftest import Api, make_client

PATH = "/v1/webhook_endpoints"
URL = "https://hooks.example.com/a"


async def test_an_endpoint_is_created_changed_tested_and_deleted(http: httpx2.AsyncClient, api: Api) -> None:
    created = (await http.post(PATH, json={"url": URL, "event_types": ["session.status_idled"]})).json()
    assert (created["type"], created["secret"], created["ordered"]) == ("webhook_endpoint", "whsec_first", False)
    where = f"{PATH}/{created['id']}"
    shown = (await http.get(where)).json()
    assert (shown["url"], "secret" in shown) == (URL, False)
    changed = (await http.post(where, json={"ordered": True, "disabled": True})).json()
    assert (changed["ordered"], changed["disabled_at"] is not None, changed["event_types"]) == (
        *(True, True),
        ["session.status_idled"],
    )
    rotated = (await http.post(f"{where}/rotate_secret", json={"overlap_seconds": 60})).json()
    assert rotated["secret"] == "whsec_second"
    sent = (await http.post(f"{where}/test")).json()
    assert (sent["event_type"], sent["payload"]["data"]["id"]) == ("webhook.test", created["id"])
    assert (await http.get(f"{where}/deliveries", params={"status": "pending"})).json()["data"] == [sent]
    assert (await http.get(f"{where}/deliveries/{sent['id']}")).json() == sent
    assert (await http.post(f"{where}/deliveries/{sent['id']}/replay")).json()["id"] == sent["id"]
    assert api.world.webhooks.woken == ["org_a"] * 4
    assert (await http.get(PATH)).json()["data"][0]["id"] == created["id"]
    assert (await http.delete(where)).json() == {"id": created["id"], "type": "webhook_endpoint_deleted"}
    assert (await http.get(where)).status_code == 404


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("http://hooks.example.com/", "must use https"),
        ("https://user:pass@hooks.example.com/", "user name or password"),
        ("https://user@hooks.example.com/", "user name or password"),
        ("https://hooks.example.com/#part", "fragment"),
        ("https://127.0.0.1/", "not a public internet address"),
        ("https://[::ffff:10.0.0.1]/", "not a public internet address"),
        ("https://169.254.169.254/latest", "not a public internet address"),
        ("ftp://hooks.example.com/", "must have the form"),
        ("https:///path", "must have the form"),
        ("https://hooks.example.com/a b", "must have the form"),
        ("https://[::1", "not a valid URL"),
    ],
)
async def test_a_url_that_may_not_be_used_is_refused(http: httpx2.AsyncClient, url: str, problem: str) -> None:
    response = await http.post(PATH, json={"url": url})
    assert response.status_code == 400, response.text
    assert problem in response.json()["error"]["message"]


async def test_an_unknown_type_is_refused(http: httpx2.AsyncClient) -> None:
    response = await http.post(PATH, json={"url": URL, "event_types": ["session.idle"]})
    assert (response.status_code, "there is no event type 'session.idle'" in response.text) == (400, True)


async def test_only_administrators_create_endpoints_for_all_sessions(api: Api) -> None:
    async with make_client(api.app, "secret-c") as member:
        assert (await member.post(PATH, json={"url": URL})).status_code == 403
        created = await member.post(PATH, json={"url": URL, "session_id": "sesn_1"})
        assert (created.status_code, created.json()["session_id"]) == (200, "sesn_1")
