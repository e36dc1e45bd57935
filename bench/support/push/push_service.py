"""A push service on loopback: it accepts messages for browsers, verifies the signature and decrypts what arrived.

It implements RFC 8291 and 8292 with `cryptography` alone, and shares no code with the library that the server uses.
"""

import base64
import json
import os
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from bench.support.webhooks.receiver import ReceivedWebhook, WebhookReceiver

_MAX_TOKEN_SECONDS = 24 * 3600
_SIGNATURE_BYTES = 64


@dataclass(slots=True)
class BrowserKeys:
    """The keys that a browser creates when it subscribes."""

    path: str
    private: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    auth: bytes = field(default_factory=lambda: os.urandom(16))

    @property
    def public(self) -> bytes:
        return self.private.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)

    def to_json(self) -> dict[str, str]:
        return {"p256dh": encode(self.public), "auth": encode(self.auth)}

    def decrypt(self, body: bytes) -> bytes:
        """Decrypts one record of `aes128gcm`. Raises an error if the message is not for this browser."""
        salt, length = body[:16], body[20]
        server_public, ciphertext = body[21 : 21 + length], body[21 + length :]
        (record_size,) = struct.unpack("!L", body[16:20])
        if len(ciphertext) > record_size:
            raise ValueError("The message has more than one record.")
        server_key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), server_public)
        secret = self.private.exchange(ec.ECDH(), server_key)
        info = b"WebPush: info\x00" + self.public + server_public
        material = _derive(secret, self.auth, info, 32)
        key = _derive(material, salt, b"Content-Encoding: aes128gcm\x00", 16)
        nonce = _derive(material, salt, b"Content-Encoding: nonce\x00", 12)
        return AESGCM(key).decrypt(nonce, ciphertext, None).rstrip(b"\x00").removesuffix(b"\x02")


@dataclass(frozen=True, slots=True)
class PushedMessage:
    path: str
    content: dict[str, Any]
    topic: str
    claims: dict[str, Any]


class PushService:
    """`respond` decides the status of each message. Faults are messages that no browser would show."""

    def __init__(self) -> None:
        self.messages: list[PushedMessage] = []
        """Those that were accepted."""
        self.faults: list[str] = []
        self.respond: Callable[[str], int] = lambda _path: 201
        self.public_key: str | None = None
        """The key with which the browsers subscribed. None: any."""
        self._browsers: dict[str, BrowserKeys] = {}
        self._receiver = WebhookReceiver()

    async def __aenter__(self) -> Self:
        self._receiver.respond = self._receive
        await self._receiver.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        del error
        await self._receiver.__aexit__(None, None, None)

    @property
    def received(self) -> int:
        """The number of requests, also of those that were refused."""
        return len(self._receiver.received)

    def add_browser(self, path: str) -> BrowserKeys:
        self._browsers[path] = BrowserKeys(path)
        return self._browsers[path]

    def subscription(self, browser: BrowserKeys) -> dict[str, Any]:
        """Returns the body of a request that subscribes the browser."""
        return {"endpoint": self._receiver.url(browser.path), "keys": browser.to_json()}

    def accepted(self, browser: BrowserKeys) -> list[PushedMessage]:
        return [each for each in self.messages if each.path == browser.path]

    async def wait_for(self, browser: BrowserKeys, count: int, seconds: float = 30) -> list[PushedMessage]:
        """Waits until the browser has this many messages. Returns those that it has after the timeout."""
        await self._receiver.wait_until(lambda: len(self.accepted(browser)) >= count, seconds)
        return self.accepted(browser)

    def _receive(self, request: ReceivedWebhook) -> int:
        status = self.respond(request.path)
        if status // 100 != 2:
            return status
        browser = self._browsers.get(request.path)
        if browser is None:
            return 404
        try:
            claims = self._verify(request.headers)
            content = json.loads(browser.decrypt(request.content))
        except (InvalidSignature, ValueError, KeyError) as error:
            self.faults.append(f"{request.path}: {error!r}")
            return 403
        self.messages.append(PushedMessage(request.path, content, request.headers["topic"], claims))
        return status

    def _verify(self, headers: dict[str, str]) -> dict[str, Any]:
        scheme, _, parameters = headers["authorization"].partition(" ")
        fields = dict(part.strip().split("=", 1) for part in parameters.split(","))
        if scheme != "vapid" or (self.public_key is not None and fields["k"] != self.public_key):
            raise ValueError("The message is signed with another key than that of the subscription.")
        signed, _, signature = fields["t"].rpartition(".")
        raw = decode(signature)
        if len(raw) != _SIGNATURE_BYTES:
            raise ValueError("The signature has another length.")
        halves = (int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
        key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), decode(fields["k"]))
        key.verify(encode_dss_signature(*halves), signed.encode(), ec.ECDSA(hashes.SHA256()))
        claims: dict[str, Any] = json.loads(decode(signed.partition(".")[2]))
        if claims["aud"] != self._receiver.url("") or not 0 < claims["exp"] - time.time() <= _MAX_TOKEN_SECONDS:
            raise ValueError(f"The claims are not valid: {claims}")
        if int(headers["ttl"]) <= 0 or headers["content-encoding"] != "aes128gcm":
            raise ValueError("The headers are not those of a message that is stored.")
        return claims


def encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _derive(secret: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(hashes.SHA256(), length, salt, info).derive(secret)
