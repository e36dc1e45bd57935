"""Measures nesting and number of values of JSON text before it is parsed.

A parser builds an object of some 100 bytes for each `{}`, so a small body can take a lot of memory and time. The scan
looks at structural characters outside strings only, window by window, and stops at the first limit that is exceeded.
Text that is not JSON is measured too low or too high at most behind the place where the parser stops.
"""

import re
from itertools import accumulate
from typing import Final

from footplate.api.errors import LimitExceeded
from footplate.domain.limits import RequestLimits

_WINDOW: Final = 64 * 1024
_ESCAPE: Final = re.compile(rb"\\.", re.DOTALL)
_STEPS: Final = bytes.maketrans(b"{[}]", b"\x02\x02\x00\x00")
_NOT_BRACKETS: Final = bytes(set(range(256)) - set(b"{[}]"))


def check_json(raw: bytes, limits: RequestLimits) -> int:
    """Return an upper bound of the number of values. Raise `LimitExceeded` if they are too many or nested too deep."""
    opened = raw.count(b"{") + raw.count(b"[")
    values = opened + raw.count(b",") + 1
    if values <= limits.json_nodes and opened <= limits.json_depth:
        return values
    return _scan(raw, limits)


def _scan(raw: bytes, limits: RequestLimits) -> int:
    values, depth, carried = 1, 0, b""
    for start in range(0, len(raw), _WINDOW):
        structure, carried = _remove_strings(carried + raw[start : start + _WINDOW])
        opened = structure.count(b"{") + structure.count(b"[")
        values += opened + structure.count(b",")
        if values > limits.json_nodes:
            raise LimitExceeded(
                400, "json_nodes", f"The request body has more than {limits.json_nodes} JSON values.", field="body"
            )
        steps = structure.translate(_STEPS, _NOT_BRACKETS)
        if depth + opened > limits.json_depth:
            deepest = max(accumulate((step - 1 for step in steps), initial=depth))
            if deepest > limits.json_depth:
                raise LimitExceeded(
                    400,
                    "json_depth",
                    f"The request body is nested deeper than {limits.json_depth} levels.",
                    field="body",
                )
        depth += 2 * opened - len(steps)
    return values


def _remove_strings(window: bytes) -> tuple[bytes, bytes]:
    """Return what is outside strings, and what the next window has to begin with to continue an open string."""
    if b"\\" in window:
        window = _ESCAPE.sub(b"", window)
    parts = window.split(b'"')
    escape = b"\\" if window.endswith(b"\\") else b""
    carried = b'"' + escape if len(parts) % 2 == 0 else b""
    return b"".join(parts[::2]), carried
