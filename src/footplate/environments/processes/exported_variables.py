"""Parses the output of `export -p`, as bash and plain `sh` print it."""

import re
from collections.abc import Mapping
from typing import Final

_DECLARATION: Final = re.compile(
    rb"""^(?:declare\ -[B-Zb-z]+|export)\ ([A-Za-z_][A-Za-z0-9_]*)  # the name
    =((?:
        "(?:[^"\\]|\\.)*+"       # as bash prints it
      | \$'(?:[^'\\]|\\.)*+'     # with control characters
      | '[^']*+'                 # as sh prints it
      | \\.
      | [^\s"'\\$]
    )*+)$""",
    re.MULTILINE | re.DOTALL | re.VERBOSE,
)
_PIECE: Final = re.compile(
    rb"""\$'((?:[^'\\]|\\.)*+)' | "((?:[^"\\]|\\.)*+)" | '([^']*+)' | \\(.) | ([^"'\\$])""", re.DOTALL | re.VERBOSE
)
_DOUBLE_QUOTED_ESCAPE: Final = re.compile(rb'\\(?:([$`"\\])|\n)')
_ANSI_ESCAPE: Final = re.compile(rb"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|(.))", re.DOTALL)
_ANSI_CHARACTERS: Final = {
    b"a": b"\a", b"b": b"\b", b"e": b"\x1b", b"E": b"\x1b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t",
    b"v": b"\v",
}  # fmt: skip


def parse_exported_variables(printed: bytes) -> Mapping[bytes, bytes]:
    """Returns the variables by name. Skips arrays, those without a value, and everything that is not a declaration."""
    return {
        name: b"".join(_unquote(piece) for piece in _PIECE.finditer(value))
        for name, value in _DECLARATION.findall(printed)
    }


def _unquote(piece: re.Match[bytes]) -> bytes:
    ansi, double, single, escaped, plain = piece.groups()
    if ansi is not None:
        return _ANSI_ESCAPE.sub(_replace_ansi_escape, ansi)
    if double is not None:
        return _DOUBLE_QUOTED_ESCAPE.sub(lambda found: found.group(1) or b"", double)
    return next(part for part in (single, escaped, plain) if part is not None)


def _replace_ansi_escape(found: re.Match[bytes]) -> bytes:
    octal, hexadecimal, character = found.groups()
    if octal is not None:
        return bytes([int(octal, 8) & 0xFF])
    if hexadecimal is not None:
        return bytes([int(hexadecimal, 16)])
    return _ANSI_CHARACTERS.get(character, character)
