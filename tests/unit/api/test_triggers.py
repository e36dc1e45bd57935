"""Routes of triggers: what is refused, that secrets are shown once, and that only signed deliveries are accepted."""

import json
import time
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest
from anthropic import AsyncAnthropic
from standardwebhooks import Webhook

from footplate.client.webhooks import sign_delivery
from footplate.domain.network.request_limits import RequestLimits
from footplate.domain.sessions.triggers import DeliveryOutcome

from .conftest import Api, make_client
from .fake_triggers import SECRETS

pytestmark = [pytest.mark.timing, pytest.mark.requirement("O8")]

PATH = "/v1/triggers"
STEP = {"kind": "shell", "command": "git fetch origin ${payload.branch} && echo ${steps.a.stdout}"}
BODY = '{"branch": "main"}'


@pytest.fixture
async def fields(sdk: AsyncAnthropic) -> dict[str, Any]:
    agent = await sdk.beta.agents.create(name="A", model="m")
    environment = await sdk.beta.environments.create(name="E")
    return {"name": "push", "agent": agent.id, "environment_id": environment.id, "steps": [STEP]}


@pytest.fixture
async def where(http: httpx2.AsyncClient, fields: dict[str, Any]) -> str:
    return f"{PATH}/{(await http.post(PATH, json=fields)).json()['id']}"


async def test_a_trigger_is_created_changed_rotated_and_archived(
    http: httpx2.AsyncClient, fields: dict[str, Any]
) -> None:
    condition = 'payload.branch == "main"'
    created = (await http.post(PATH, json={**fields, "condition": condition, "title": "${payload.branch}"})).json()
    assert (created["secret"], created["status"], created["max_per_minute"]) == (SECRETS[0], "active", 60)
    assert (created["steps"][0]["command"], created["condition"]) == (STEP["command"], condition)
    where = f"{PATH}/{created['id']}"
    assert "secret" not in (await http.get(where)).json()
    changed = (await http.post(f"{where}/update", json={"paused": True, "condition": None, "name": "x"})).json()
    assert (changed["status"], changed["condition"], changed["name"]) == ("paused", None, "x")
    assert changed["steps"] == created["steps"]
    assert (await http.post(f"{where}/rotate_secret", json={})).json()["secret"] == SECRETS[1]
    assert [one["id"] for one in (await http.get(PATH)).json()["data"]] == [created["id"]]
    assert (await http.post(f"{where}/archive")).json()["archived_at"] is not None
    assert (await http.get(PATH)).json()["data"] == []


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"agent": None}, "needs an agent and an environment_id"),
        ({"steps": []}, "steps"),
        ({"condition": "payload.a =="}, "not a valid CEL expression"),
        ({"condition": "steps.a.stdout"}, "not a valid CEL expression"),
        ({"title": "${steps.a.stdout}"}, "only references to the payload"),
        ({"steps": [{**STEP, "command": "echo '${payload.a}'"}]}, "not a whole argument outside of quotes"),
        ({"steps": [{**STEP, "command": "bash -c ${payload.a}"}]}, "cannot be used here"),
        ({"steps": [{**STEP, "command": "echo ${payload.a b}"}]}, "must have the form"),
        (
            {"steps": [{**STEP, "command": "true", "condition": "'${payload.a}' == 'b'"}]},
            "cannot be used in this field",
        ),
        ({"steps": [{"kind": "prompt", "content": "Hi ${payload[0]}"}]}, "must have the form"),
        ({"max_per_minute": 6001}, "max_per_minute"),
        ({"session_id": "sesn_none"}, "cannot be combined with session_id"),
        ({"project_ids": ["proj_1"], "context": {"directory": "/etc"}}, ""),
    ],
)
async def test_a_trigger_that_could_not_act_is_refused(
    http: httpx2.AsyncClient, fields: dict[str, Any], changes: dict[str, Any], problem: str
) -> None:
    body = {name: value for name, value in {**fields, **changes}.items() if value is not None}
    response = await http.post(PATH, json=body)
    assert response.status_code in {400, 404}, response.text
    assert problem in response.json()["error"]["message"]


async def test_a_signed_delivery_needs_no_key_and_is_announced(api: Api, where: str) -> None:
    async with make_client(api.app, None) as sender:
        response = await sender.post(where, content=BODY, headers=sign_delivery(SECRETS[0], "msg_1", BODY))
        receipt = response.json()
        assert (response.status_code, receipt["outcome"], receipt["delivery_id"]) == (200, "session_created", "msg_1")
        again = await sender.post(where, content=BODY, headers=sign_delivery(SECRETS[0], "msg_1", BODY))
        assert again.json() == receipt
    assert [one.session_id for one in api.world.accepted] == [receipt["session_id"]]
    assert api.world.triggers.received[0].payload == {"branch": "main"}


async def test_a_failed_delivery_reveals_no_reason_and_asks_for_a_retry(api: Api, where: str) -> None:
    api.world.triggers.outcome = DeliveryOutcome.FAILED
    async with make_client(api.app, None) as sender:
        response = await sender.post(where, content=BODY, headers=sign_delivery(SECRETS[0], "msg_1", BODY))
    assert (response.status_code, response.json()["error"]["code"]) == (409, "delivery_failed")
    assert api.world.accepted == []


async def test_every_delivery_that_is_not_valid_gets_the_same_response(api: Api, where: str) -> None:
    good = sign_delivery(SECRETS[0], "msg_1", BODY)
    webhook, now = Webhook(SECRETS[0]), time.time()

    def sign(seconds: float, delivery_id: str = "msg_1") -> dict[str, str]:
        """Signs as the library does, with another time."""
        at = datetime.fromtimestamp(now + seconds, UTC)
        signature = webhook.sign(delivery_id, at, BODY)
        return {
            **good,
            "webhook-timestamp": str(int(at.timestamp())),
            "webhook-signature": signature,
            "webhook-id": delivery_id,
        }

    cases: list[tuple[str, bytes, dict[str, str]]] = [
        (where, BODY.encode(), {}),
        (where, BODY.encode(), {**good, "webhook-signature": ""}),
        (where, BODY.encode(), {**good, "webhook-signature": "v1"}),
        (where, BODY.encode(), {**good, "webhook-signature": "v1,!!!!"}),
        (where, BODY.encode(), {**good, "webhook-signature": good["webhook-signature"].replace("v1,", "v2,")}),
        (where, BODY.encode(), {**good, "webhook-signature": "v1," * 1000}),
        (where, BODY.encode(), {**good, "webhook-timestamp": "nan"}),
        (where, BODY.encode(), {**good, "webhook-timestamp": str(int(now) + 1)}),
        (where, BODY.encode(), {**good, "webhook-id": "msg_2"}),
        (where, BODY.replace("main", "evil").encode(), good),
        (where, b"\xff", good),
        (where, BODY.encode(), sign(-310)),
        (where, BODY.encode(), sign(900)),
        (where, BODY.encode(), sign(0, "with.dots")),
        (where, BODY.encode(), sign_delivery(SECRETS[1], "msg_1", BODY)),
        (f"{PATH}/trig_none", BODY.encode(), good),
    ]
    async with make_client(api.app, None) as sender:
        for path, body, headers in cases:
            response = await sender.post(path, content=body, headers=headers)
            shown = json.loads(response.text)
            shown.pop("request_id")
            assert (response.status_code, shown["error"]["code"]) == (401, "unauthenticated"), headers
            assert shown["error"]["message"] == "The delivery was refused, because its signature is not valid."
    async with make_client(api.app, "secret-a") as member:
        assert (await member.post(f"{where}/archive")).status_code == 200
        assert (await member.post(where, content=BODY, headers=good)).status_code == 401
    assert api.world.triggers.received == []


async def test_a_body_that_is_too_large_or_no_object_is_refused(api: Api, where: str) -> None:
    small = api.build(limits=RequestLimits(trigger_bytes=1024))
    large = json.dumps({"a": "x" * 2000})
    async with make_client(small, None) as sender:
        for path in (where, f"{PATH}/trig_none"):
            response = await sender.post(path, content=large, headers=sign_delivery(SECRETS[0], "msg_1", large))
            assert response.status_code == 413
        for body in ("[]", "{", '"text"', '{"a": NaN}'):
            response = await sender.post(where, content=body, headers=sign_delivery(SECRETS[0], "msg_1", body))
            assert response.status_code == 400, body
    assert api.world.triggers.received == []


async def test_a_replaced_secret_is_valid_until_the_overlap_ends(
    api: Api, http: httpx2.AsyncClient, where: str
) -> None:
    async def send(secret: str) -> int:
        async with make_client(api.app, None) as sender:
            return (await sender.post(where, content=BODY, headers=sign_delivery(secret, "m", BODY))).status_code

    await http.post(f"{where}/rotate_secret", json={"overlap_seconds": 60})
    assert (await send(SECRETS[0]), await send(SECRETS[1])) == (200, 200)
    await http.post(f"{where}/rotate_secret", json={"overlap_seconds": 0})
    assert (await send(SECRETS[0]), await send(SECRETS[1])) == (401, 200)
