"""Checks the token of a model request, sends the request to the provider with the real credential, and filters the
response.
"""

import dataclasses
from collections.abc import AsyncIterator
from typing import Final

import httpx2
import structlog

from footplate.domain.agents.model_connections import PROVIDERS, WireFormatName
from footplate.proxy import provider_wire_formats, usage_metering
from footplate.proxy.bedrock_signing import BodyTooLarge
from footplate.proxy.hop_by_hop_headers import Headers, has_two_lengths
from footplate.proxy.model_grants import Grant, Grants
from footplate.proxy.provider_client import Connection, ModelRequest, ProviderClient
from footplate.telemetry import metrics

log = structlog.get_logger(__name__)

_FIRST_ERROR_STATUS: Final = 400
_MAX_STATUS: Final = 599
_MAX_ERROR_BYTES: Final = 1_000_000
_LENGTH_HEADERS: Final = frozenset({b"content-length", b"content-encoding"})


class ModelRequestRefused(Exception):
    def __init__(self, status: int, message: str, wire_format: WireFormatName = "anthropic") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.wire_format = wire_format

    @property
    def body(self) -> bytes:
        """The error in the format that the provider's SDK expects."""
        return provider_wire_formats.encode_error(self.wire_format, self.status, self.message)

    @property
    def headers(self) -> Headers:
        return [(b"content-type", b"application/json"), (b"content-length", str(len(self.body)).encode())]


class ProviderResponse:
    """A provider's response, without headers and credentials that must not be forwarded."""

    def __init__(
        self, connection: Connection, response: httpx2.Response, headers: Headers, error: bytes | None = None
    ) -> None:
        """`error`: the complete body of an error response. Any other body is still to be read."""
        self.status = response.status_code
        self.headers = headers
        self.error = error
        self._connection = connection
        self._response = response
        self._meter = usage_metering.create_meter(connection.wire_format, headers) if error is None else None

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yields the body in chunks. Raises `ConnectionError` if the provider aborts the response."""
        if self.error is not None:
            yield self.error
            return
        try:
            async for piece in self._response.aiter_raw():
                if self._meter is not None:
                    self._meter.feed(piece)
                yield piece
        except httpx2.HTTPError as error:
            kind = type(error).__name__
            log.warning("model response was cut off", action="proxy.cut", connection=self._connection.name, error=kind)
            raise ConnectionError(f"The provider's response was cut off ({kind}).") from error

    async def aclose(self) -> None:
        """Can be called more than once. Usage is counted even if the response was cut off."""
        meter, self._meter = self._meter, None
        if meter is not None and (usage := meter.read_usage()) is not None:
            metrics.count_relayed_tokens(self._connection.name, dataclasses.asdict(usage))
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
        name, rest = provider_wire_formats.split_path(path)
        token_header, token = provider_wire_formats.extract_token(headers)
        grant = self._grants.find(token)
        if grant is None or (bound_to is not None and bound_to is not grant):
            raise ModelRequestRefused(401, _NOT_AUTHORIZED, _assumed_format(name))
        connection = self._upstream.find_connection(grant.organisation, name)
        if not grant.is_valid:
            raise turn_ended_refusal(connection.wire_format if connection else _assumed_format(name))
        if connection is None:
            raise ModelRequestRefused(404, f"This worker has no connection {name!r}.", _assumed_format(name))
        if not provider_wire_formats.WIRE_FORMATS[connection.wire_format].allows(method, rest):
            log.warning(
                "model request refused: its method or path is not supported",
                action="proxy.refused",
                method=method,
                connection=name,
            )
            raise ModelRequestRefused(404, _NO_ROUTE, connection.wire_format)
        return grant, ModelRequest(connection, method, rest, query, headers, token_header)

    async def send(self, request: ModelRequest, body: AsyncIterator[bytes] | bytes | None) -> ProviderResponse:
        """Sends the request. The caller closes the response.

        Raises `ModelRequestRefused` if the provider cannot be reached.
        """
        try:
            response = await self._upstream.send_request(request, body)
        except BodyTooLarge as error:
            raise ModelRequestRefused(
                413, "The request body is too large to be signed.", request.connection.wire_format
            ) from error
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
        remover = request.connection.remover
        headers = [
            (name, remover.remove_credential(value))
            for name, value in provider_wire_formats.filter_response_headers(response.headers.raw)
        ]
        status = response.status_code
        if status > _MAX_STATUS:
            raise ModelRequestRefused(
                502, f"The model provider responded with the invalid status {status}.", request.connection.wire_format
            )
        if status < _FIRST_ERROR_STATUS:
            return ProviderResponse(request.connection, response, headers)
        body = remover.remove_credential(await _read_error_body(response))
        forwarded = [(name, value) for name, value in headers if name not in _LENGTH_HEADERS]
        return ProviderResponse(
            request.connection, response, [*forwarded, (b"content-length", str(len(body)).encode())], body
        )


def turn_ended_refusal(wire_format: WireFormatName) -> ModelRequestRefused:
    """503, not 401: clients treat 401 as final, but a turn whose worker was only delayed must be retried."""
    message = "This turn has ended, or its worker lost the lease. The model proxy no longer sends requests for it."
    return ModelRequestRefused(503, message, wire_format)


def _assumed_format(connection: str) -> WireFormatName:
    """The format of an error for a client whose connection is not known: that of the provider with this name."""
    return PROVIDERS[connection].wire_format if connection in PROVIDERS else "anthropic"


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
        connection=request.connection.name,
        error=type(error).__name__,
    )
    message = f"The model provider could not be reached, or did not respond ({type(error).__name__})."
    return ModelRequestRefused(status, message, request.connection.wire_format)


async def _read_error_body(response: httpx2.Response) -> bytes:
    data = bytearray()
    async for piece in response.aiter_bytes():
        data += piece
        if len(data) > _MAX_ERROR_BYTES:
            break
    return bytes(data[:_MAX_ERROR_BYTES])
