"""Hosts by name, as rules for `WebFetch` have them, and the host of a URL, read more strictly than a browser does."""

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from footplate.domain.linear_regex import LinearRegex

_MAX_CHARACTERS: Final = 253
_MAX_STARS: Final = 5
_LABEL: Final = re.compile(r"[a-z0-9_*-]+")
_HOST: Final = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")
_URL: Final = re.compile(r"[\x21-\x5b\x5d-\x7e]+")
"""Printable ASCII without spaces and backslashes: what else there may be is read differently by different programs."""


@dataclass(frozen=True, slots=True)
class DomainPattern:
    regex: LinearRegex

    @classmethod
    def of(cls, name: str) -> "DomainPattern":
        """A leading `*.` is any depth, a `*` alone any host; elsewhere it stays between two dots."""
        name = name.lower().rstrip(".")
        if name == "*":
            return cls(LinearRegex(r".+"))
        head, rest = (r"(?:[^.]+\.)+", name[2:]) if name.startswith("*.") else ("", name)
        return cls(LinearRegex(head + "[^.]*".join(re.escape(piece) for piece in rest.split("*"))))

    @staticmethod
    def fault(name: str) -> tuple[int, str] | None:
        """What is wrong with it, and where."""
        if not name:
            return 0, "the name of a host is missing"
        if len(name) > _MAX_CHARACTERS:
            return _MAX_CHARACTERS, f"the name of a host has at most {_MAX_CHARACTERS} characters"
        if name.count("*") > _MAX_STARS:
            return 0, f"the name of a host has at most {_MAX_STARS} stars"
        at = 0
        for label in name.lower().rstrip(".").split("."):
            if not label:
                return at, "there is a dot too much"
            if (found := _LABEL.match(label)) is None or found.end() < len(label):
                return at + (found.end() if found else 0), "this is no part of a host's name"
            at += len(label) + 1
        return None

    def matches(self, host: str) -> bool:
        return self.regex.fullmatch(host)


def host_of(url: str) -> str | None:
    """None: it cannot be told for sure. Then no rule allows it."""
    if not _URL.fullmatch(url):
        return None
    try:
        parts = urlsplit(url)
        host = parts.hostname
        _ = parts.port
    except ValueError:
        return None
    if parts.scheme not in {"http", "https"} or not host or "@" in parts.netloc:
        return None
    host = host.lower().rstrip(".")
    return host if _HOST.fullmatch(host) else None
