"""Validates the name of an organisation: when it is created, and before the name is used as a directory name."""

import re
from typing import Final

from footplate.domain.errors import InvalidRequest

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_MAX_DIRECTORY_BYTES: Final = 255
"""Maximum bytes in a directory name."""


def check_new_name(name: str) -> None:
    """Raise `InvalidRequest` if a new organisation may not have this name."""
    if not _NAME.fullmatch(name):
        raise InvalidRequest(
            f"organisation: {name[:80]!r} is not a valid organisation name",
            field="organisation",
            help_text="Use 1 to 64 letters, digits, dots, hyphens and underscores, starting with a letter or a digit.",
        )


def directory_name(organisation: str) -> str:
    """Return the name of the organisation's directory. Raises `InvalidRequest` for an unsafe path component, because
    old organisations may have names that were not checked.
    """
    is_unsafe = organisation in {"", ".", ".."} or "/" in organisation or "\0" in organisation
    if is_unsafe or len(organisation.encode(errors="surrogatepass")) > _MAX_DIRECTORY_BYTES:
        raise InvalidRequest(
            f"organisation: {organisation[:80]!r} cannot be used as a directory name",
            field="organisation",
            help_text="Create keys for an organisation with another name: footplate api-keys create --organisation …",
        )
    return organisation
