"""Values that try to leave the word into which they are substituted: quotes, expansions, line breaks, Unicode, size."""

import random
from collections.abc import Sequence
from typing import Final

_ATTACK: Final = "touch pwned"
_SHAPES: Final = (
    "; {}", "&& {}", "| {}", "& {}", "\n{}\n", "\r\n{}", "$({})", "`{}`", "${{IFS}}{}", "' ; {} ; '", '" ; {} ; "',
    "'\\''; {} #", "\\'; {}; \\'", "$'\\n{}'", "<({})", ">({})", "{} #", "#\n{}", "a'\n{}\n'b", "\\\n{}", "'$({})'",
    '"$({})"', "$(({}))", "~; {}", "*; {}", "{{a,b}}; {}", "-exec {} ;", "--checkpoint-action=exec={}",
    "-o ProxyCommand={}", "\u2028{}", "\u0085{}", "\ufeff; {}", "\u202e; {}", "\u2019; {}", "\uff07; {}", "\x0b{}",
    "\x0c{}", "\x1b[2J; {}", "\x7f; {}", "EOF\n{}\nEOF", "${{steps.x.stdout}}; {}", "$((1)) ; {}", "\\$({})",
    "\\`{}\\`", "%s; {}", "!!; {}", "\t{}\t",
)  # fmt: skip
_PIECES: Final = (
    "'", '"', "\\", "$", "`", "(", ")", "{", "}", ";", "&", "|", "<", ">", "\n", "\r", "\t", " ", "*", "?", "[", "]",
    "~", "#", "!", "%", "=", "-", "é", "\u202e", "\U0001f600", "a", _ATTACK, "$(", "${", "$'", "\\x27", "\u2019",
)  # fmt: skip


def hostile_values(number: int, chance: random.Random) -> Sequence[str]:
    """Return values: each known attack, random mixtures, and some that are long."""
    values: list[str] = [shape.format(_ATTACK) for shape in _SHAPES]
    while len(values) < number - number // 20:
        values.append("".join(chance.choice(_PIECES) for _ in range(chance.randrange(1, 60))))
    while len(values) < number:
        size = chance.choice([10_000, 99_000, 200_000, 2_000_000])
        values.append(("'; " + _ATTACK + "; '") + "x" * size)
    return values[:number] if number >= len(_SHAPES) else chance.sample(values, number)
