"""The interface (port) through which a harness in the worker process calls the model proxy without a network
connection.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

Headers: TypeAlias = Sequence[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request as a client would send it to the proxy."""

    method: str
    path: bytes
    """The path with its query string."""
    headers: Headers = field(repr=False)
    body: bytes = field(repr=False)


class HttpResponse(Protocol):
    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Headers: ...

    def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives, in its content encoding. Raises `ConnectionError` if it is interrupted."""

    async def aclose(self) -> None:
        """Close the response. Can be called more than once."""


class ModelTransport(Protocol):
    async def send(self, request: HttpRequest) -> HttpResponse:
        """Send a request. The caller closes the response. A refusal is also returned as a response, not raised."""
