"""Removes credentials from text that leaves the process, such as error reports. The functions do no I/O.

Common formats of keys, tokens and passwords are recognised. This is only the second line of defence: reports are built
without conversation texts, headers or variables.
"""

import re
from typing import Final

_MAX_LENGTH: Final = 8000
_REPLACEMENT: Final = "[removed]"
_SECRETS: Final = re.compile(
    r"""
    \b(?:sk|pk|fp|rk|ghp|gho|ghs|github_pat|glpat|xox[abprs])[-_][\w-]{8,}   # keys, by their usual beginnings
  | \bAKIA[0-9A-Z]{16}\b
  | \bey[\w-]{8,}\.[\w-]{8,}\.[\w-]+                                         # a JSON web token
  | \bbearer\s+[\w.~+/=-]+
  | (?<=://)[^\s/@:]*:[^\s/@]+(?=@)                                          # name and password in an address
  | \b(?:password|passwd|secret|token|api[-_]?key)["']?\s*[=:]\s*["']?[^\s"',;)}]+
    """,
    re.IGNORECASE | re.VERBOSE,
)


def scrub_secrets(text: str) -> str:
    """Removes text that looks like a secret, and shortens the result to the length that endpoints accept."""
    scrubbed = _SECRETS.sub(_REPLACEMENT, text)
    return scrubbed if len(scrubbed) <= _MAX_LENGTH else f"…{scrubbed[-_MAX_LENGTH:]}"
