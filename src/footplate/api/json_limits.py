"""Measures nesting and number of values of JSON text before it is parsed.

A parser builds an object of some 100 bytes for each `{}`, so a small body can take a lot of memory and time. The scan
looks at structural characters outside strings only, window by window, and stops at the first limit that is exceeded.
Text that is not JSON is measured too low or too high at most behind the place where the parser stops.
"""

from itertools import accumulate
from typing import Final

from footplate.api.errors import LimitExceeded
from footplate.domain.limits import RequestLimits

_WINDOW: Final = 64 * 1024
_STEPS: Final = bytes.maketrans(b"{[}]", b"\x02\x02\x00\x00")
_NOT_BRACKETS: Final = bytes(set(range(256)) - set(b"{[}]"))


def check_json(raw: bytes, limits: RequestLimits) -> int:
    """Return an upper bound of the number of values in a body. Raise `LimitExceeded` if it has too many, or is nested
    too deep.
    """
    return _check(raw, limits, "json_nodes", limits.json_nodes)


def check_line(raw: bytes, limits: RequestLimits) -> None:
    """The same for a line of a transcript, which may have more values: changes of files are in it line by line."""
    _check(raw, limits, "transcript_nodes", limits.transcript_nodes)


def _check(raw: bytes, limits: RequestLimits, setting: str, most: int) -> int:
    opened = raw.count(b"{") + raw.count(b"[")
    values = opened + raw.count(b",") + 1
    if values <= most and opened <= limits.json_depth:
        return values
    values, depth, carried = 1, 0, b""
    for start in range(0, len(raw), _WINDOW):
        structure, carried = _remove_strings(carried + raw[start : start + _WINDOW])
        opened = structure.count(b"{") + structure.count(b"[")
        values += opened + structure.count(b",")
        if values > most:
            raise LimitExceeded(400, setting, f"The request body has more than {most} JSON values.", field="body")
        steps = structure.translate(_STEPS, _NOT_BRACKETS)
        if depth + opened > limits.json_depth:
            _check_depth(steps, depth, limits.json_depth)
        depth += 2 * opened - len(steps)
    return values


def _check_depth(steps: bytes, depth: int, most: int) -> None:
    """Each step is 2 for a bracket that opens, and 0 for one that closes."""
    if max(accumulate((step - 1 for step in steps), initial=depth)) > most:
        raise LimitExceeded(400, "json_depth", f"The request body is nested deeper than {most} levels.", field="body")


def _remove_strings(window: bytes) -> tuple[bytes, bytes]:
    """Return what is outside strings, and what the next window has to begin with to continue an open string."""
    # In pairs from the left, so that one backslash remains where it escapes what follows.
    window = window.replace(rb"\\", b"").replace(rb"\"", b"")
    parts = window.split(b'"')
    escape = b"\\" if window.endswith(b"\\") else b""
    carried = b'"' + escape if len(parts) % 2 == 0 else b""
    return b"".join(parts[::2]), carried
