"""Blots credentials out of texts that leave the process. Pure.

It knows the usual looks of keys, tokens and passwords. It is a second line: the first is that no text of a
conversation, no header and no variable is put into a report at all.
"""

import re
from typing import Final

_LONGEST: Final = 8000
_BLOT: Final = "[removed]"
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


def clean(text: str) -> str:
    """Without what looks like a secret, and of a length that an endpoint takes."""
    blotted = _SECRETS.sub(_BLOT, text)
    return blotted if len(blotted) <= _LONGEST else f"…{blotted[-_LONGEST:]}"
