"""Checks a model request's token, sends it to the provider with the real credential, and filters the response."""

from collections.abc import AsyncIterator
from typing import Final

import httpx2
import structlog

from footplate.proxy import wire
from footplate.proxy.grants import Grant, Grants
from footplate.proxy.headers import Headers, has_two_lengths
from footplate.proxy.upstream import Ask, Upstream

log = structlog.get_logger(__name__)

_ERRORS: Final = 400
_HIGHEST_STATUS: Final = 599
_LONGEST_ERROR: Final = 1_000_000
_NEW_LENGTH: Final = frozenset({b"content-length", b"content-encoding"})


class Refused(Exception):
    def __init__(self, status: int, message: str, provider: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.provider = provider

    @property
    def body(self) -> bytes:
        """The error in the format that the provider's SDK expects."""
        return wire.error(self.provider, self.status, self.message)

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
            log.warning("model response cut", action="proxy.cut", provider=self._provider, error=kind)
            raise ConnectionError(f"The provider's response was cut off ({kind}).") from error

    async def aclose(self) -> None:
        await self._response.aclose()


class ProviderGateway:
    def __init__(self, grants: Grants, upstream: Upstream) -> None:
        self._grants = grants
        self._upstream = upstream

    def admit(
        self, method: str, path: bytes, query: bytes, headers: Headers, *, bound_to: Grant | None = None
    ) -> tuple[Grant, Ask]:
        """Checks a request. Raises `Refused`. `headers` are lower-case. `bound_to`: the only grant that this connection
        accepts.
        """
        if has_two_lengths(headers):
            raise Refused(400, _TWO_LENGTHS)
        provider, rest = wire.split(path)
        token_header, token = wire.given_token(headers)
        grant = self._grants.find(token)
        if grant is None or (bound_to is not None and bound_to is not grant):
            raise Refused(401, _NOT_OF_A_TURN, provider)
        if not grant.good:
            raise turn_ended_refusal(provider)
        if provider not in wire.WIRES or not wire.WIRES[provider].takes(method, rest):
            log.warning("model request refused", action="proxy.refused", method=method, provider=provider)
            raise Refused(404, _NO_ROUTE, provider)
        if provider not in self._upstream.providers:
            raise Refused(404, f"This worker has no API key for the provider {provider!r}.", provider)
        return grant, Ask(provider, method, rest, query, headers, token_header)

    async def send(self, request: Ask, body: AsyncIterator[bytes] | bytes | None) -> ProviderResponse:
        """Sends the request. The caller closes the response. Raises `Refused` if the provider cannot be reached."""
        try:
            response = await self._upstream.ask(request, body)
        except httpx2.TimeoutException as error:
            raise _unreachable(request, error, 504) from error
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise _unreachable(request, error, 502) from error
        try:
            return await self._receive(request, response)
        except BaseException as error:
            await response.aclose()
            if isinstance(error, httpx2.HTTPError):
                raise _unreachable(request, error, 502) from error
            raise

    async def _receive(self, request: Ask, response: httpx2.Response) -> ProviderResponse:
        remover = self._upstream.blotter(request.provider)
        headers = [(name, remover.clean(value)) for name, value in wire.answered_on(response.headers.raw)]
        status = response.status_code
        if status > _HIGHEST_STATUS:
            raise Refused(502, f"The model provider responded with the invalid status {status}.", request.provider)
        if status < _ERRORS:
            return ProviderResponse(request.provider, response, headers)
        body = remover.clean(await _read(response))
        forwarded = [(name, value) for name, value in headers if name not in _NEW_LENGTH]
        return ProviderResponse(request.provider, response, [*forwarded, (b"content-length", str(len(body)).encode())], body)


def turn_ended_refusal(provider: str) -> Refused:
    """503, not 401: clients treat 401 as final, but a turn whose worker was only delayed must be retried."""
    message = "This turn has ended, or its worker lost the lease. The model proxy no longer sends requests for it."
    return Refused(503, message, provider)


_NOT_OF_A_TURN: Final = "This token does not belong to a running turn, or is used outside the turn's own socket."
_TWO_LENGTHS: Final = "The request has more than one Content-Length or Transfer-Encoding. Send exactly one of them."
_NO_ROUTE: Final = "The model proxy does not support this method and path. It forwards model requests only."


def _unreachable(ask: Ask, error: Exception, status: int) -> Refused:
    # The error's text may contain the URL, which may contain a password.
    log.warning("provider not reached", action="proxy.unreachable", provider=ask.provider, error=type(error).__name__)
    message = f"The model provider could not be reached, or did not respond ({type(error).__name__})."
    return Refused(status, message, ask.provider)


async def _read(response: httpx2.Response) -> bytes:
    data = bytearray()
    async for piece in response.aiter_bytes():
        data += piece
        if len(data) > _LONGEST_ERROR:
            break
    return bytes(data[:_LONGEST_ERROR])
