"""Each route serves the roles that the published table permits, and refuses all others."""

from dataclasses import replace

import pytest
from bench.support.roles.published_table import PublishedTable

from footplate.api.requests.route_permissions import required_permissions
from footplate.domain.organisations.roles import ROLES, Permission

from .conftest import Api, make_client
from .fake_services import ALICE, KEYS

OPEN = {("GET", "/livez"), ("GET", "/readyz"), ("POST", "/v1/triggers/{trigger_id}")}
"""Routes without a key. The signature of a delivery decides about the last one."""
SIGN_IN = {
    ("GET", "/v1/sign_in"),
    ("GET", "/v1/sign_in/oidc"),
    ("GET", "/v1/sign_in/oidc/callback"),
    ("POST", "/v1/browser_sessions"),
    ("POST", "/v1/device_authorizations"),
    ("POST", "/v1/device_authorizations/token"),
    ("POST", "/v1/browser_sessions/one_time_codes"),
}
"""Routes that sign in. The last one serves only programs on the same machine."""
MESSAGE = {"type": "user.message", "content": [{"type": "text", "text": "hi"}]}
DECISION = {"type": "user.tool_confirmation", "tool_use_id": "sevt_1", "result": "allow"}


@pytest.mark.parametrize("role", [*ROLES, "release_manager"])
async def test_a_route_refuses_a_key_without_its_permission(
    api: Api, role: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(KEYS, "secret-r", replace(ALICE, roles=frozenset({role})))
    table = PublishedTable.read()
    assert table.roles == {name: {permission.value for permission in ROLES[name]} for name in ROLES}
    permitted = table.roles.get(role, frozenset())
    routes = [(method.upper(), path) for path, methods in api.app.openapi()["paths"].items() for method in methods]
    async with make_client(api.app, "secret-r") as client:
        for method, path in routes:
            if (method, path) in OPEN | SIGN_IN:
                continue
            conditions = (None, *table.conditions(method, path))
            required = frozenset[str]().union(*(table.route_permissions(method, path, each) for each in conditions))
            assert required == set(required_permissions(method, path)), (method, path)
            response = await client.request(method, path.replace("{", "x_").replace("}", ""))
            assert (response.status_code == 403) == permitted.isdisjoint(required), (method, path, response.text)


@pytest.mark.parametrize(("role", "allowed"), [("operator", [MESSAGE]), ("approver", [DECISION])])
async def test_each_kind_of_event_needs_its_own_permission(
    api: Api, role: str, allowed: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(KEYS, "secret-r", replace(ALICE, roles=frozenset({role})))
    async with make_client(api.app, "secret-r") as client:
        for event in (MESSAGE, DECISION):
            response = await client.post("/v1/sessions/sesn_none/events", json={"events": [event]})
            assert response.status_code == (404 if event in allowed else 403), response.text


def test_what_writes_needs_more_than_viewing(api: Api) -> None:
    """The routes that read although their method is POST are listed here, so that a new one is noticed."""
    reading = {
        path
        for path, methods in api.app.openapi()["paths"].items()
        if "post" in methods and Permission.VIEW in required_permissions("POST", path)
    }
    own = {
        *("/v1/browser_sessions/one_time_codes", "/v1/device_authorizations/{user_code}"),
        *("/v1/notification_settings", "/v1/push_subscriptions", "/v1/push_subscriptions/{subscription_id}/test"),
    }
    assert reading == {"/v1/policies/import", "/v1/policies/replay", "/v1/policies/explain"} | own
