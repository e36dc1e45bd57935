"""Matches host names against the domain patterns of `WebFetch` rules, and extracts the host of a URL. The host of an
ambiguous URL is unknown, so no domain rule allows it.
"""

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from footplate.domain.text.linear_regex import LinearRegex

_MAX_CHARACTERS: Final = 253
_MAX_STARS: Final = 5
_LABEL: Final = re.compile(r"[a-z0-9_*-]+")
_HOST: Final = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")
_URL: Final = re.compile(r"[\x21-\x5b\x5d-\x7e]+")
"""Printable ASCII without spaces and backslashes. Programs disagree on how to parse URLs with other characters."""


@dataclass(frozen=True, slots=True)
class DomainPattern:
    regex: LinearRegex

    @classmethod
    def parse(cls, name: str) -> "DomainPattern":
        """Compile a pattern. `*` alone matches any host and a leading `*.` any number of labels; any other `*` matches
        within one label.
        """
        name = name.lower().rstrip(".")
        if name == "*":
            return cls(LinearRegex(r".+"))
        head, rest = (r"(?:[^.]+\.)+", name[2:]) if name.startswith("*.") else ("", name)
        return cls(LinearRegex(head + "[^.]*".join(re.escape(piece) for piece in rest.split("*"))))

    @staticmethod
    def find_error(name: str) -> tuple[int, str] | None:
        """Return the position and description of the first error in a pattern, or None if it is valid."""
        if not name:
            return 0, "the host name is missing"
        if len(name) > _MAX_CHARACTERS:
            return _MAX_CHARACTERS, f"a host name can have at most {_MAX_CHARACTERS} characters"
        if name.count("*") > _MAX_STARS:
            return 0, f"a host name can have at most {_MAX_STARS} `*`"
        at = 0
        for label in name.lower().rstrip(".").split("."):
            if not label:
                return at, "there is an extra dot"
            if (found := _LABEL.match(label)) is None or found.end() < len(label):
                return at + (found.end() if found else 0), "this character is not allowed in a host name"
            at += len(label) + 1
        return None

    def matches(self, host: str) -> bool:
        return self.regex.fullmatch(host)


def extract_host(url: str) -> str | None:
    """Return the host of a URL, or None if it is ambiguous. A URL without a known host is not allowed by any domain
    rule.
    """
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
