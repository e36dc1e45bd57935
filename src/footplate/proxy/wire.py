"""The providers' wire formats, as far as the proxy knows them: which requests, which headers, how an error looks. Pure.

What is not named here does not pass. Among it is all that outlives a request at the provider (files, batches, stored
answers): it would belong to the account, and with that to every session.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from footplate.proxy.headers import HOP_BY_HOP, Headers, without

_BEARER: Final = b"bearer "
_CREDENTIALS: Final = frozenset(
    {b"authorization", b"x-api-key", b"api-key", b"x-goog-api-key", b"proxy-authorization", b"cookie"}
)
_CHOOSES_AN_ACCOUNT: Final = frozenset({b"openai-organization", b"openai-project", b"anthropic-workspace-id"})
_NOT_ASKED_ON: Final = HOP_BY_HOP | _CREDENTIALS | _CHOOSES_AN_ACCOUNT | {b"host", b"expect"}
_NOT_ANSWERED_ON: Final = HOP_BY_HOP | {b"set-cookie", b"alt-svc", b"proxy-authenticate"}
_MODEL: Final = r"[A-Za-z0-9][A-Za-z0-9._:-]*"


@dataclass(frozen=True, slots=True)
class Wire:
    default_url: str
    routes: Sequence[tuple[str, re.Pattern[str]]]
    """Method and path behind the provider's base URL."""

    def takes(self, method: str, path: str) -> bool:
        return any(method == known and pattern.fullmatch(path) for known, pattern in self.routes)


def _routes(**patterns: Sequence[str]) -> list[tuple[str, re.Pattern[str]]]:
    return [(method, re.compile(pattern)) for method, group in patterns.items() for pattern in group]


WIRES: Final = {
    "anthropic": Wire(
        "https://api.anthropic.com",
        _routes(POST=["/v1/messages", "/v1/messages/count_tokens"], GET=["/v1/models", f"/v1/models/{_MODEL}"]),
    ),
    "openai": Wire(
        "https://api.openai.com/v1",
        _routes(POST=["/chat/completions", "/responses"], GET=["/models", f"/models/{_MODEL}"]),
    ),
}


def split(raw_path: bytes) -> tuple[str, str]:
    """The provider's name and the path behind it, as they were sent: nothing that is escaped in them is undone."""
    first, slash, rest = raw_path.decode("ascii", errors="replace").removeprefix("/").partition("/")
    return first, slash + rest


def given_token(headers: Iterable[tuple[bytes, bytes]]) -> tuple[bytes, str]:
    """The header that brings it, and the token. Two of them are none: who sends two means to confuse somebody."""
    found = [(name, value) for name, value in headers if name in {b"authorization", b"x-api-key"}]
    if len(found) != 1:
        return b"", ""
    name, value = found[0]
    if name == b"authorization":
        if value[: len(_BEARER)].lower() != _BEARER:
            return b"", ""
        value = value[len(_BEARER) :].strip()
    return name, value.decode("ascii", errors="replace")


def credential(name: bytes, api_key: str) -> tuple[bytes, bytes]:
    """The real one, in the header that brought the token: so each client's own way of saying it is kept."""
    return name, (f"Bearer {api_key}" if name == b"authorization" else api_key).encode()


def asked_on(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    return without(headers, _NOT_ASKED_ON)


def answered_on(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    return without(headers, _NOT_ANSWERED_ON)


_KINDS: Final = {401: "authentication_error", 404: "not_found_error", 405: "not_found_error", 504: "timeout_error"}


def error(provider: str, status: int, message: str) -> bytes:
    """A body that the provider's own SDK can read."""
    said = {"type": _KINDS.get(status, "api_error"), "message": message}
    if provider == "openai":
        return json.dumps({"error": {**said, "code": None, "param": None}}).encode()
    return json.dumps({"type": "error", "error": said}).encode()


class Blotter:
    """Takes a credential out of what a provider says about it: some repeat it in their errors."""

    _SHORTEST: Final = 16
    """A shorter one is no secret, and a common word would be torn out of texts."""

    def __init__(self, api_key: str) -> None:
        escaped = json.dumps(api_key)[1:-1]
        texts = {api_key, escaped} if len(api_key) >= self._SHORTEST else set()
        self._secrets = [text.encode() for text in sorted(texts, key=len, reverse=True)]

    def clean(self, data: bytes) -> bytes:
        for secret in self._secrets:
            data = data.replace(secret, b"[removed]")
        return data
