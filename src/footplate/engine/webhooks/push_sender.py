"""Encrypts a notification for one browser and sends it to the browser's push service (RFC 8030, 8291 and 8292).

The push service sees neither the text nor who it is for. The request is sent as a webhook is, to an address that was
checked, because a member chooses the URL.
"""

import base64
import hashlib
import time
from typing import Final
from urllib.parse import urlsplit

from footplate.domain.organisations.webhooks import AttemptResult
from footplate.domain.ports.notifications import PushKeys
from footplate.domain.sessions.notifications import MAX_AGE, PushTarget, VapidKey
from footplate.engine.webhooks.http_sender import WebhookSender

_ENCODING: Final = "aes128gcm"
_TOKEN_SECONDS: Final = 12 * 3600
"""The validity of a signature. Push services accept at most a day."""
_TOPIC_BYTES: Final = 18
"""A topic has at most 32 characters of base64url."""


class PushSender:
    def __init__(self, sender: WebhookSender, keys: PushKeys, *, contact: str) -> None:
        """`contact`: how the operator of a push service can reach the one of this server: `mailto:` or `https:`."""
        self._sender = sender
        self._keys = keys
        self._contact = contact

    async def send(self, target: PushTarget, content: bytes, *, topic: str) -> AttemptResult:
        """Send the content once. A later message with the same topic replaces one that the browser has not received."""
        url = target.endpoint.url
        headers = {
            "content-type": "application/octet-stream",
            "content-encoding": _ENCODING,
            "ttl": str(int(MAX_AGE.total_seconds())),
            "urgency": "high",
            "topic": _hash_topic(topic),
            "authorization": _sign(url, await self._keys.load(), self._contact),
        }
        return await self._sender.post(url, _encrypt(target, content), headers)


def _encrypt(target: PushTarget, content: bytes) -> bytes:
    from pywebpush import WebPusher  # it imports two HTTP clients, which only a process that sends needs

    keys = {"p256dh": target.p256dh, "auth": target.auth}
    encoded = WebPusher({"endpoint": target.endpoint.url, "keys": keys}).encode(content, _ENCODING)
    body: bytes = encoded["body"]
    return body


def _sign(url: str, key: VapidKey, contact: str) -> str:
    from py_vapid import Vapid02

    parts = urlsplit(url)
    claims = {"sub": contact, "aud": f"{parts.scheme}://{parts.netloc}", "exp": int(time.time()) + _TOKEN_SECONDS}
    signed: str = Vapid02.from_raw(key.private.encode()).sign(claims)["Authorization"]
    return signed


def _hash_topic(topic: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(topic.encode()).digest()[:_TOPIC_BYTES]).decode()
