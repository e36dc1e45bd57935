"""Verifies the signature of a delivery to a trigger, according to Standard Webhooks.

Every delivery that is not accepted receives the same response, whether its trigger does not exist, its signature is
wrong or its time is too long ago, so a response reveals nothing about triggers.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from standardwebhooks import Webhook
from standardwebhooks.webhooks import WebhookVerificationError

from footplate.domain.errors import Unauthenticated
from footplate.domain.organisations.webhooks import new_secret

ID_HEADER: Final = "webhook-id"
_HEADERS: Final = (ID_HEADER, "webhook-timestamp", "webhook-signature")
_DELIVERY_ID: Final = re.compile(r"[A-Za-z0-9_:=+/@~-]{1,200}")
"""Without dots: the signature covers id, time and body, separated by dots."""
_MAX_HEADER: Final = 2_000
_UNKNOWN_SECRETS: Final = (new_secret(),)
"""The signature of a delivery to an unknown trigger is verified too, so that it takes as long as one to a known one."""


class InvalidSignature(Unauthenticated):
    def __init__(self) -> None:
        super().__init__(
            "The delivery was refused, because its signature is not valid.",
            help_text="Check the ID and the secret of the trigger. Sign each attempt again, because a signature is "
            "valid for five minutes.",
        )


def read_signature(headers: Mapping[str, str]) -> dict[str, str]:
    """Returns the headers that verify a delivery. Raises `InvalidSignature` if they cannot be valid."""
    found = {name: headers.get(name, "") for name in _HEADERS}
    if not _DELIVERY_ID.fullmatch(found[ID_HEADER]) or not all(0 < len(text) <= _MAX_HEADER for text in found.values()):
        raise InvalidSignature
    return found


def verify_signature(raw: bytes, signature: dict[str, str], secrets: Sequence[str] | None) -> None:
    """Raises `InvalidSignature` unless one of the secrets has signed the body. None: there is no such trigger."""
    verified = False
    for secret in secrets or _UNKNOWN_SECRETS:
        try:
            Webhook(secret).verify(raw, signature, json_parse=False)
        except (WebhookVerificationError, ValueError):  # a header that is malformed, or a body that is not UTF-8
            continue
        verified = True
    if not verified or secrets is None:
        raise InvalidSignature
