"""Describes the model providers' HTTP APIs as far as the proxy needs them: allowed requests, headers and error bodies.
The functions do no I/O.

All other requests are rejected. These include requests that store data at the provider (files, batches, stored
responses), because all sessions share the provider's account.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from footplate.domain.agents.model_connections import ModelProvider, WireFormatName
from footplate.proxy.hop_by_hop_headers import HOP_BY_HOP, Headers, remove_headers

_BEARER: Final = b"bearer "
_CREDENTIALS: Final = frozenset(
    {b"authorization", b"x-api-key", b"api-key", b"x-goog-api-key", b"proxy-authorization", b"cookie"}
)
_ACCOUNT_HEADERS: Final = frozenset(
    {b"openai-organization", b"openai-project", b"anthropic-workspace-id", b"x-goog-user-project"}
)
_SIGNATURE_HEADERS: Final = frozenset({b"x-amz-date", b"x-amz-security-token", b"x-amz-content-sha256"})
_REMOVED_REQUEST_HEADERS: Final = (
    HOP_BY_HOP | _CREDENTIALS | _ACCOUNT_HEADERS | _SIGNATURE_HEADERS | {b"host", b"expect"}
)
_REMOVED_RESPONSE_HEADERS: Final = HOP_BY_HOP | {b"set-cookie", b"alt-svc", b"proxy-authenticate"}
_MODEL: Final = r"[A-Za-z0-9][A-Za-z0-9._:-]*"
_BEDROCK_MODEL: Final = r"[A-Za-z0-9]([A-Za-z0-9._:-]|%3A|%2F(?=[A-Za-z0-9]))*"
"""A name with a version (`:`), or the ARN of an inference profile (`/`), both of which clients escape."""


@dataclass(frozen=True, slots=True)
class WireFormat:
    routes: Sequence[tuple[str, re.Pattern[str]]]
    """Method and path relative to the provider's base URL."""

    def allows(self, method: str, path: str) -> bool:
        return any(method == known and pattern.fullmatch(path) for known, pattern in self.routes)


def _compile_routes(**patterns: Sequence[str]) -> list[tuple[str, re.Pattern[str]]]:
    return [(method, re.compile(pattern)) for method, group in patterns.items() for pattern in group]


WIRE_FORMATS: Final[Mapping[WireFormatName, WireFormat]] = {
    "anthropic": WireFormat(
        _compile_routes(POST=["/v1/messages", "/v1/messages/count_tokens"], GET=["/v1/models", f"/v1/models/{_MODEL}"]),
    ),
    "openai": WireFormat(
        _compile_routes(POST=["/chat/completions", "/responses"], GET=["/models", f"/models/{_MODEL}"]),
    ),
    "gemini": WireFormat(
        _compile_routes(
            POST=[f"/v1(beta)?/models/{_MODEL}:(generateContent|streamGenerateContent|countTokens)"],
            GET=["/v1(beta)?/models", f"/v1(beta)?/models/{_MODEL}"],
        ),
    ),
    "mistral": WireFormat(
        _compile_routes(POST=["/v1/chat/completions"], GET=["/v1/models", f"/v1/models/{_MODEL}"]),
    ),
    "bedrock": WireFormat(_compile_routes(POST=[f"/model/{_BEDROCK_MODEL}/(converse|converse-stream)"])),
}


def split_path(raw_path: bytes) -> tuple[str, str]:
    """Returns the connection's name and the remaining path as they were sent, without decoding escapes."""
    first, slash, rest = raw_path.decode("ascii", errors="replace").removeprefix("/").partition("/")
    return first, slash + rest


def extract_token(headers: Iterable[tuple[bytes, bytes]]) -> tuple[bytes, str]:
    """Returns the header that contains the token, and the token. A request with two tokens counts as one without a
    token.
    """
    found = [(name, value) for name, value in headers if name in {b"authorization", b"x-api-key"}]
    if len(found) != 1:
        return b"", ""
    name, value = found[0]
    if name == b"authorization":
        if value[: len(_BEARER)].lower() != _BEARER:
            return b"", ""
        value = value[len(_BEARER) :].strip()
    return name, value.decode("ascii", errors="replace")


def credential_headers(provider: ModelProvider, token_header: bytes, api_key: str) -> Headers:
    """Returns the real credential in the provider's header, or in the same header as the token, so that each client's
    format is preserved. Empty: the connection has no key.
    """
    if not api_key:
        return []
    name = provider.credential_header.encode() if provider.credential_header else token_header
    return [(name, (f"Bearer {api_key}" if name == b"authorization" else api_key).encode())]


def filter_request_headers(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    return remove_headers(headers, _REMOVED_REQUEST_HEADERS)


def filter_response_headers(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    return remove_headers(headers, _REMOVED_RESPONSE_HEADERS)


_ERROR_TYPES: Final = {
    401: "authentication_error",
    404: "not_found_error",
    405: "not_found_error",
    504: "timeout_error",
}


_GEMINI_STATUSES: Final = {401: "UNAUTHENTICATED", 404: "NOT_FOUND", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED"}
_BEDROCK_ERRORS: Final = {
    401: "UnrecognizedClientException",
    404: "ResourceNotFoundException",
    503: "ServiceUnavailableException",
    504: "ModelTimeoutException",
}


def encode_error(wire_format: WireFormatName, status: int, message: str) -> bytes:
    """Returns an error body that the provider's SDK can parse."""
    details = {"type": _ERROR_TYPES.get(status, "api_error"), "message": message}
    match wire_format:
        case "openai":
            return json.dumps({"error": {**details, "code": None, "param": None}}).encode()
        case "gemini":
            error = {"code": status, "message": message, "status": _GEMINI_STATUSES.get(status, "UNKNOWN")}
            return json.dumps({"error": error}).encode()
        case "mistral":
            return json.dumps({"object": "error", **details}).encode()
        case "bedrock":
            name = _BEDROCK_ERRORS.get(status, "InternalServerException")
            return json.dumps({"__type": name, "message": message}).encode()
        case _:
            return json.dumps({"type": "error", "error": details}).encode()


class CredentialRemover:
    """Removes a credential from a provider's response, because some providers repeat it in their errors."""

    _MIN_SECRET_LENGTH: Final = 16
    """A shorter value is not a secret, and removing a common word would damage texts."""

    def __init__(self, api_key: str) -> None:
        escaped = json.dumps(api_key)[1:-1]
        texts = {api_key, escaped} if len(api_key) >= self._MIN_SECRET_LENGTH else set()
        self._secrets = [text.encode() for text in sorted(texts, key=len, reverse=True)]

    def remove_credential(self, data: bytes) -> bytes:
        for secret in self._secrets:
            data = data.replace(secret, b"[removed]")
        return data
