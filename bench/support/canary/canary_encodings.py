"""A canary key, and every encoding in which its bytes could be stored."""

import base64
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, quote_plus

_ALIGNMENTS: Final = 3


@dataclass(frozen=True, slots=True)
class Canary:
    value: str
    """Has characters that URLs and JSON escape, and a middle part that neither escapes."""

    @classmethod
    def new(cls) -> "Canary":
        return cls(f'sk-canary/{secrets.token_hex(6)}+"\\{secrets.token_hex(16)}&%={secrets.token_hex(4)}')

    @property
    def core(self) -> str:
        return self.value.split("\\")[1].split("&")[0]

    def list_encodings(self) -> dict[str, bytes]:
        """Returns the bytes to search for, by encoding. The core matches every encoding that keeps letters."""
        found = {
            "plain": self.value.encode(),
            "URL-encoded": quote(self.value, safe="").encode(),
            "JSON-escaped": json.dumps(self.value)[1:-1].encode(),
            "its middle": self.core.encode(),
            "hexadecimal": self.value.encode().hex().encode(),
            "UTF-16": self.core.encode("utf-16-le"),
        }
        for alignment in range(_ALIGNMENTS):
            found[f"base64, {alignment}"] = _stable_part(base64.b64encode, self.value, alignment)
            found[f"base64 for URLs, {alignment}"] = _stable_part(base64.urlsafe_b64encode, self.value, alignment)
            found[f"base64 of its middle, {alignment}"] = _stable_part(base64.b64encode, self.core, alignment)
        return found

    def find_in(self, data: bytes) -> list[str]:
        return [form for form, look in self.list_encodings().items() if look in data]


def _stable_part(encode: Callable[[bytes], bytes], text: str, alignment: int) -> bytes:
    """Returns the part of its base64 that is the same inside any longer text, without the characters shared with
    neighbours.
    """
    encoded = encode(b"\0" * alignment + text.encode()).rstrip(b"=")
    start = -(-alignment * 8 // 6)
    whole = (alignment + len(text)) * 8 // 6
    return encoded[start:whole]


PLANTED_ENCODINGS: Final[Mapping[str, Callable[[str], str]]] = {
    "plain": str,
    "base64, 0": lambda value: base64.b64encode(value.encode()).decode(),
    "base64, 1": lambda value: base64.b64encode(b"x" + value.encode() + b"yz").decode(),
    "base64, 2": lambda value: base64.b64encode(b"xy" + value.encode() + b"z").decode(),
    "URL-encoded": quote_plus,
    "JSON-escaped": lambda value: json.dumps({"key": value}),
}
"""Encodings in which a canary is planted, to show that it would be found."""
