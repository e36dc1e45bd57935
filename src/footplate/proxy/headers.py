"""Headers that belong to one connection and are not passed on to the next. Pure."""

from collections.abc import Iterable
from typing import Final, TypeAlias

Headers: TypeAlias = list[tuple[bytes, bytes]]

HOP_BY_HOP: Final = frozenset(
    {b"connection", b"keep-alive", b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade"}
)


def without(headers: Iterable[tuple[bytes, bytes]], left_out: frozenset[bytes] = HOP_BY_HOP) -> Headers:
    """Those that the connection itself names are hop-by-hop as well."""
    lower = [(name.lower(), value) for name, value in headers]
    named = {part.strip().lower() for name, value in lower if name == b"connection" for part in value.split(b",")}
    return [(name, value) for name, value in lower if name not in left_out and name not in named]
