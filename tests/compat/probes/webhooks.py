"""Webhooks: the official SDK verifies and parses what the server sends."""

from anthropic.types.beta import BetaWebhookEvent
from bench.support.sdk.sdk_client import SdkClient
from bench.support.webhooks.receiver import WebhookReceiver
from standardwebhooks import WebhookVerificationError
from tests.compat.checks import require_equal
from tests.compat.registry import supported

from footplate.client import AsyncFootplate


@supported("webhooks.unwrap", note="The types are listed in [webhooks.md](webhooks.md#event-types).")
@supported("webhooks.unwrap", "payload", "headers", "key")
@supported("webhooks.parse_unverified")
@supported("webhooks.parse_unverified", "payload")
async def webhooks_are_verified_and_parsed(door: SdkClient) -> None:
    sdk = door.sync.beta.webhooks if door.kind == "sync" else door.sdk.beta.webhooks
    async with WebhookReceiver() as receiver, AsyncFootplate(door.cluster.base_urls[0], door.cluster.key) as client:
        endpoint = await client.webhooks.create(receiver.url(), event_types=["session.created", "session.deleted"])
        session_id = (await door.session()).id
        assert await receiver.wait_until(lambda: _types(receiver, session_id) == {"session.created"}, 60)
        await door.call("sessions.delete", session_id)
        assert await receiver.wait_until(lambda: "session.deleted" in _types(receiver, session_id), 60)
        arrived = {each.type: each for each in receiver.accepted if each.session_id == session_id}
        for name, webhook in arrived.items():
            event = sdk.unwrap(webhook.body, headers=webhook.headers, key=endpoint.secret)
            require_equal((event.type, event.id, event.data.type), ("event", webhook.id, name))
            require_equal(event, sdk.parse_unverified(webhook.body))
            require_equal(type(event.data).__name__, f"BetaWebhookSession{name.partition('.')[2].title()}EventData")
            model = BetaWebhookEvent.model_validate_json(webhook.body, strict=False)
            require_equal(model.data.type, name)
        for method in ("unwrap", "parse_unverified"):
            door.tally.calls[f"{door.kind} webhooks.{method}"] += len(arrived)
        forged = webhook.body.replace("session.", "sessiom.")
        try:
            sdk.unwrap(forged, headers=webhook.headers, key=endpoint.secret)
        except WebhookVerificationError:
            await client.webhooks.delete(endpoint.id)
        else:
            raise AssertionError("a forged webhook was accepted")


def _types(receiver: WebhookReceiver, session_id: str) -> set[str]:
    return {each.type for each in receiver.accepted if each.session_id == session_id}
