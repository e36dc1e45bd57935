"""The port through which a harness in the worker process calls the model proxy without a connection."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

Headers: TypeAlias = Sequence[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """As a client would send it to the proxy's address."""

    method: str
    path: bytes
    """With the query."""
    headers: Headers = field(repr=False)
    body: bytes = field(repr=False)


class HttpResponse(Protocol):
    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Headers: ...

    def pieces(self) -> AsyncIterator[bytes]:
        """The body as it arrives, in its content encoding. Raises `ConnectionError` when it is cut."""

    async def aclose(self) -> None:
        """Safe to call again."""


class ModelTransport(Protocol):
    async def send(self, request: HttpRequest) -> HttpResponse:
        """The caller closes the response. A refusal is returned as a response too, not raised."""
