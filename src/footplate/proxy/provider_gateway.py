"""Checks the token of a model request, sends the request to the provider with the real credential, and filters the
response.
"""

from collections.abc import AsyncIterator
from typing import Final

import httpx2
import structlog

from footplate.proxy import provider_wire_formats
from footplate.proxy.hop_by_hop_headers import Headers, has_two_lengths
from footplate.proxy.model_grants import Grant, Grants
from footplate.proxy.provider_client import ModelRequest, ProviderClient

log = structlog.get_logger(__name__)

_FIRST_ERROR_STATUS: Final = 400
_MAX_STATUS: Final = 599
_MAX_ERROR_BYTES: Final = 1_000_000
_LENGTH_HEADERS: Final = frozenset({b"content-length", b"content-encoding"})


class ModelRequestRefused(Exception):
    def __init__(self, status: int, message: str, provider: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.provider = provider

    @property
    def body(self) -> bytes:
        """The error in the format that the provider's SDK expects."""
        return provider_wire_formats.encode_error(self.provider, self.status, self.message)

    @property
    def headers(self) -> Headers:
        return [(b"content-type", b"application/json"), (b"content-length", str(len(self.body)).encode())]


class ProviderResponse:
    """A provider's response, without headers and credentials that must not be forwarded."""

    def __init__(self, provider: str, response: httpx2.Response, headers: Headers, error: bytes | None = None) -> None:
        """`error`: the complete body of an error response. Any other body is still to be read."""
        self.status = response.status_code
        self.headers = headers
        self.error = error
        self._provider = provider
        self._response = response

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yields the body in chunks. Raises `ConnectionError` if the provider aborts the response."""
        if self.error is not None:
            yield self.error
            return
        try:
            async for piece in self._response.aiter_raw():
                yield piece
        except httpx2.HTTPError as error:
            kind = type(error).__name__
            log.warning("model response was cut off", action="proxy.cut", provider=self._provider, error=kind)
            raise ConnectionError(f"The provider's response was cut off ({kind}).") from error

    async def aclose(self) -> None:
        await self._response.aclose()


class ProviderGateway:
    def __init__(self, grants: Grants, upstream: ProviderClient) -> None:
        self._grants = grants
        self._upstream = upstream

    def admit(
        self, method: str, path: bytes, query: bytes, headers: Headers, *, bound_to: Grant | None = None
    ) -> tuple[Grant, ModelRequest]:
        """Checks a request. Raises `ModelRequestRefused`. `headers` are lower-case. `bound_to`: the only grant that
        this connection accepts.
        """
        if has_two_lengths(headers):
            raise ModelRequestRefused(400, _TWO_LENGTHS)
        provider, rest = provider_wire_formats.split_path(path)
        token_header, token = provider_wire_formats.extract_token(headers)
        grant = self._grants.find(token)
        if grant is None or (bound_to is not None and bound_to is not grant):
            raise ModelRequestRefused(401, _NOT_AUTHORIZED, provider)
        if not grant.is_valid:
            raise turn_ended_refusal(provider)
        if provider not in provider_wire_formats.WIRE_FORMATS or not provider_wire_formats.WIRE_FORMATS[
            provider
        ].allows(method, rest):
            log.warning(
                "model request refused: its method or path is not supported",
                action="proxy.refused",
                method=method,
                provider=provider,
            )
            raise ModelRequestRefused(404, _NO_ROUTE, provider)
        if provider not in self._upstream.providers:
            raise ModelRequestRefused(404, f"This worker has no API key for the provider {provider!r}.", provider)
        return grant, ModelRequest(provider, method, rest, query, headers, token_header)

    async def send(self, request: ModelRequest, body: AsyncIterator[bytes] | bytes | None) -> ProviderResponse:
        """Sends the request. The caller closes the response.

        Raises `ModelRequestRefused` if the provider cannot be reached.
        """
        try:
            response = await self._upstream.send_request(request, body)
        except httpx2.TimeoutException as error:
            raise _unreachable_refusal(request, error, 504) from error
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise _unreachable_refusal(request, error, 502) from error
        try:
            return await self._receive(request, response)
        except BaseException as error:
            await response.aclose()
            if isinstance(error, httpx2.HTTPError):
                raise _unreachable_refusal(request, error, 502) from error
            raise

    async def _receive(self, request: ModelRequest, response: httpx2.Response) -> ProviderResponse:
        remover = self._upstream.credential_remover(request.provider)
        headers = [
            (name, remover.remove_credential(value))
            for name, value in provider_wire_formats.filter_response_headers(response.headers.raw)
        ]
        status = response.status_code
        if status > _MAX_STATUS:
            raise ModelRequestRefused(
                502, f"The model provider responded with the invalid status {status}.", request.provider
            )
        if status < _FIRST_ERROR_STATUS:
            return ProviderResponse(request.provider, response, headers)
        body = remover.remove_credential(await _read_error_body(response))
        forwarded = [(name, value) for name, value in headers if name not in _LENGTH_HEADERS]
        return ProviderResponse(
            request.provider, response, [*forwarded, (b"content-length", str(len(body)).encode())], body
        )


def turn_ended_refusal(provider: str) -> ModelRequestRefused:
    """503, not 401: clients treat 401 as final, but a turn whose worker was only delayed must be retried."""
    message = "This turn has ended, or its worker lost the lease. The model proxy no longer sends requests for it."
    return ModelRequestRefused(503, message, provider)


_NOT_AUTHORIZED: Final = (
    "The token is not valid. A turn's token can be used only while the turn is running, on the turn's own socket."
)
_TWO_LENGTHS: Final = "The request has more than one Content-Length or Transfer-Encoding header. Send exactly one."
_NO_ROUTE: Final = "The model proxy does not support this method and path. It forwards only model requests."


def _unreachable_refusal(request: ModelRequest, error: Exception, status: int) -> ModelRequestRefused:
    # The error's text may contain the URL, which may contain a password.
    log.warning(
        "model provider could not be reached",
        action="proxy.unreachable",
        provider=request.provider,
        error=type(error).__name__,
    )
    message = f"The model provider could not be reached, or did not respond ({type(error).__name__})."
    return ModelRequestRefused(status, message, request.provider)


async def _read_error_body(response: httpx2.Response) -> bytes:
    data = bytearray()
    async for piece in response.aiter_bytes():
        data += piece
        if len(data) > _MAX_ERROR_BYTES:
            break
    return bytes(data[:_MAX_ERROR_BYTES])
