"""Limits the nesting depth and the number of values of JSON text before it is parsed.

A parser allocates about 100 bytes for each `{}`, so a small body can take a lot of memory and time. The scan counts
brackets and commas outside of strings and stops at the first exceeded limit. If the text is not valid JSON, the counts
are correct up to the first syntax error, where the parser stops anyway.
"""

from itertools import accumulate
from typing import Final

from footplate.api.errors import LimitExceeded
from footplate.domain.network.request_limits import RequestLimits

_WINDOW: Final = 64 * 1024
_STEPS: Final = bytes.maketrans(b"{[}]", b"\x02\x02\x00\x00")
_NOT_BRACKETS: Final = bytes(set(range(256)) - set(b"{[}]"))


def check_json(raw: bytes, limits: RequestLimits, setting: str = "json_nodes") -> int:
    """Returns an upper bound of the number of values. Raises `LimitExceeded` if there are too many or they nest too
    deep. `setting` names the limit on their number.
    """
    return _check(raw, limits, setting, getattr(limits, setting))


def check_line(raw: bytes, limits: RequestLimits) -> None:
    """Checks a line of a transcript. It may have more values than a body: it lists file changes line by line."""
    _check(raw, limits, "transcript_nodes", limits.transcript_nodes)


def _check(raw: bytes, limits: RequestLimits, setting: str, max_values: int) -> int:
    opened = raw.count(b"{") + raw.count(b"[")
    values = opened + raw.count(b",") + 1
    if values <= max_values and opened <= limits.json_depth:
        return values
    values, depth, carried = 1, 0, b""
    for start in range(0, len(raw), _WINDOW):
        structure, carried = _remove_strings(carried + raw[start : start + _WINDOW])
        opened = structure.count(b"{") + structure.count(b"[")
        values += opened + structure.count(b",")
        if values > max_values:
            raise LimitExceeded(400, setting, f"The request body has more than {max_values} JSON values.", field="body")
        steps = structure.translate(_STEPS, _NOT_BRACKETS)
        if depth + opened > limits.json_depth:
            _check_depth(steps, depth, limits.json_depth)
        depth += 2 * opened - len(steps)
    return values


def _check_depth(steps: bytes, depth: int, max_depth: int) -> None:
    """Raises `LimitExceeded` for too deep nesting. A step is 2 for an opening bracket and 0 for a closing one."""
    if max(accumulate((step - 1 for step in steps), initial=depth)) > max_depth:
        raise LimitExceeded(
            400, "json_depth", f"The request body is nested deeper than {max_depth} levels.", field="body"
        )


def _remove_strings(window: bytes) -> tuple[bytes, bytes]:
    """Returns the characters outside strings, and the prefix that the next window needs to continue an open string."""
    # Pairs are removed from the left, so that a remaining backslash escapes the character after it.
    window = window.replace(rb"\\", b"").replace(rb"\"", b"")
    parts = window.split(b'"')
    escape = b"\\" if window.endswith(b"\\") else b""
    carried = b'"' + escape if len(parts) % 2 == 0 else b""
    return b"".join(parts[::2]), carried
