"""A canary, and every form in which its bytes could lie about. Pure."""

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
    """With signs that URLs and JSON escape, and a middle that neither does."""

    @classmethod
    def new(cls) -> "Canary":
        return cls(f'sk-canary/{secrets.token_hex(6)}+"\\{secrets.token_hex(16)}&%={secrets.token_hex(4)}')

    @property
    def core(self) -> str:
        return self.value.split("\\")[1].split("&")[0]

    def looks(self) -> dict[str, bytes]:
        """What to look for, by the form that it tells of. The core finds all that leaves letters as they are."""
        found = {
            "plain": self.value.encode(),
            "URL-encoded": quote(self.value, safe="").encode(),
            "JSON-escaped": json.dumps(self.value)[1:-1].encode(),
            "its middle": self.core.encode(),
            "hexadecimal": self.value.encode().hex().encode(),
            "UTF-16": self.core.encode("utf-16-le"),
        }
        for alignment in range(_ALIGNMENTS):
            found[f"base64, {alignment}"] = _inside(base64.b64encode, self.value, alignment)
            found[f"base64 for URLs, {alignment}"] = _inside(base64.urlsafe_b64encode, self.value, alignment)
            found[f"base64 of its middle, {alignment}"] = _inside(base64.b64encode, self.core, alignment)
        return found

    def found_in(self, data: bytes) -> list[str]:
        return [form for form, look in self.looks().items() if look in data]


def _inside(encode: Callable[[bytes], bytes], text: str, alignment: int) -> bytes:
    """Its base64 wherever in a longer text it stands: without the signs that its neighbours share."""
    encoded = encode(b"\0" * alignment + text.encode()).rstrip(b"=")
    start = -(-alignment * 8 // 6)
    whole = (alignment + len(text)) * 8 // 6
    return encoded[start:whole]


PLANTED: Final[Mapping[str, Callable[[str], str]]] = {
    "plain": str,
    "base64, 0": lambda value: base64.b64encode(value.encode()).decode(),
    "base64, 1": lambda value: base64.b64encode(b"x" + value.encode() + b"yz").decode(),
    "base64, 2": lambda value: base64.b64encode(b"xy" + value.encode() + b"z").decode(),
    "URL-encoded": quote_plus,
    "JSON-escaped": lambda value: json.dumps({"key": value}),
}
"""How a test hides one, to show that it would be found."""
