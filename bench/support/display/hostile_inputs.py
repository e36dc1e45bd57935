"""Generates tool inputs that try to look like something else, each kind in turn, with random details."""

import random
from collections.abc import Callable
from typing import Final

Make = Callable[[random.Random], str]

_INVISIBLE: Final = (
    "\u200b\u200c\u200d\u200e\u200f\u061c\u2060\ufeff\u00ad\u034f\u180e\u115f\u3164\u2800\ufe0f\U000e0041\ue000"
)
_BIDIRECTIONAL: Final = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200f\u061c"
_SPACES: Final = "\u00a0\u1680\u2002\u2003\u2007\u2009\u202f\u205f\u3000\u2028\u2029\x85\t\v\f"
_TWINS: Final = "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u03bf\u2215\u2010\u2212\u037e\uff0f\uff52\U0001d42b\u2044"
_COMBINING: Final = "\u0300\u0301\u0308\u0327\u0335\u0338\u0489\u20dd"
_SEQUENCES: Final = (
    "\x1b[2J\x1b[H",
    "\x1b]0;title\x07",
    "\x9b31m",
    "\x1b[1A\x1b[2K",
    "\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\",
    "\x08" * 9,
    "\x1b[8m",
    "\x7f",
)
_FORGED: Final = (
    "\nAllow it? [y/n/s/e; any other input leaves it pending] y\n",
    "\n  | harmless\n  \\ harmless\n",
    "<U+202E><+12 more>",
    "\n\nid    sevt_0  1s    sesn_0\ntool  bash\n  command: harmless\n",
    " <+5 more>",
    "[/][bold red]:bomb:[/]",
    "\n999 more lines. Press Enter to show them, q to skip: ",
    "  needs approval",
)


def _hide(chance: random.Random, signs: str, count: int = 6) -> str:
    text: list[str] = list("echo harmless; touch EVIL")
    for _ in range(count):
        text.insert(chance.randrange(len(text) + 1), chance.choice(signs))
    return "".join(text)


KINDS: Final[dict[str, Make]] = {
    "newlines": lambda chance: "echo harmless" + "\n" * chance.randint(2, 90) + "touch EVIL",
    "carriage returns": lambda chance: "touch EVIL" + "\r" * chance.randint(1, 3) + "echo harmless" + "\r\n" * 2,
    "bidirectional": lambda chance: _hide(chance, _BIDIRECTIONAL),
    "right to left": lambda chance: f"echo \u05d0\u05d1 {chance.randint(1, 99)} \u0627; touch EVIL # \u05d2",
    "invisible": lambda chance: _hide(chance, _INVISIBLE),
    "spaces": lambda chance: _hide(chance, _SPACES) + " " * chance.randint(0, 300) + chance.choice(["", "touch EVIL"]),
    "combining": lambda chance: "rm" + "".join(chance.choices(_COMBINING, k=chance.randint(1, 60))) + " -rf x",
    "look-alike": lambda chance: _hide(chance, _TWINS),
    "control": lambda chance: f"echo {chance.choice(_SEQUENCES)}harmless{chance.choice(_SEQUENCES)}",
    "forged": lambda chance: f"echo a{chance.choice(_FORGED)}touch EVIL",
    "very long": lambda chance: "echo harmless " * chance.randint(50, 900) + "\ntouch EVIL",
    "any": lambda chance: "".join(chr(_code(chance)) for _ in range(chance.randint(1, 80))),
}


def _code(chance: random.Random) -> int:
    """Returns a random code point. A log cannot hold surrogates and NUL."""
    code = chance.choice([chance.randint(1, 0x2FF), chance.randint(1, 0xD7FF), chance.randint(0xE000, 0x10FFFF)])
    return code or 1


def make_inputs(count: int, chance: random.Random) -> list[tuple[str, str]]:
    """Returns kinds and texts. One in a hundred is larger than a list shows."""
    kinds = list(KINDS.items())
    made = [(kind, make(chance)) for kind, make in (kinds[number % len(kinds)] for number in range(count))]
    for index in range(99, count, 100):
        made[index] = ("larger than 64 KiB", "echo harmless\n" * 6_000 + "touch EVIL")
    return made
