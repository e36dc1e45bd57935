"""Removes hop-by-hop headers, which belong to one connection and must not be forwarded. The functions do no I/O."""

from collections.abc import Iterable
from typing import Final, TypeAlias

Headers: TypeAlias = list[tuple[bytes, bytes]]

HOP_BY_HOP: Final = frozenset(
    {b"connection", b"keep-alive", b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade"}
)


def remove_headers(headers: Iterable[tuple[bytes, bytes]], removed: frozenset[bytes] = HOP_BY_HOP) -> Headers:
    """Removes these headers, and those that the Connection header names, which are hop-by-hop as well."""
    lower = [(name.lower(), value) for name, value in headers]
    connection_headers = {
        part.strip().lower() for name, value in lower if name == b"connection" for part in value.split(b",")
    }
    return [(name, value) for name, value in lower if name not in removed and name not in connection_headers]


def has_two_lengths(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether a request declares its length more than once. The next server could then find a different end, and treat
    the rest as a separate request (request smuggling).
    """
    lower = [(name.lower(), value) for name, value in headers]
    lengths = [value for name, value in lower if name == b"content-length"]
    codings = [value for name, value in lower if name == b"transfer-encoding"]
    return len(lengths) + len(codings) > 1 or any(b"," in value for value in (*lengths, *codings))
