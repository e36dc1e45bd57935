"""Names of organisations: which may be created, and which may be the name of a directory."""

import re
from typing import Final

from footplate.domain.errors import InvalidRequest

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_LONGEST: Final = 255
"""Bytes in the name of a directory."""


def check_new_name(name: str) -> None:
    """Raises `InvalidRequest` for a name that no new organisation may have."""
    if not _NAME.fullmatch(name):
        raise InvalidRequest(
            f"organisation: {name[:80]!r} cannot be the name of an organisation",
            field="organisation",
            help_text="Use 1 to 64 letters, digits, dots, hyphens and underscores, and begin with a letter or a digit.",
        )


def directory_of(organisation: str) -> str:
    """The name of the organisation's directory, wherever it has one. Raises `InvalidRequest` for a name that leads
    elsewhere: it may come from a time when names were not checked.
    """
    leads_elsewhere = organisation in {"", ".", ".."} or "/" in organisation or "\0" in organisation
    if leads_elsewhere or len(organisation.encode(errors="surrogatepass")) > _LONGEST:
        raise InvalidRequest(
            f"organisation: {organisation[:80]!r} cannot be the name of a directory",
            field="organisation",
            help_text="Create keys for an organisation with another name: footplate api-keys create --organisation …",
        )
    return organisation
