"""Generates broken commands: real ones that are cut, joined, and mixed with shell syntax and odd characters."""

import random
from typing import Final

from bench.support.bypass import corpus

_FRAGMENTS: Final = (
    *";|&<>(){}[]$`\"'\\\n\t \r*?~#!=%^,:@-+",
    *("&&", "||", "$(", "${", "<<E\n", "\nE\n", "<<<", "$'", '$"', "((", "))", "[[", "]]", ";;", "\\\n", ">&", "&>"),
    *("if ", "then ", "fi", "do ", "done", "case ", "esac", " in ", "function ", "eval ", "sh -c ", "<>", "<("),
    *("\0", "{\U000b0ff0", "\u00a0", "\u200b", "\ud800", "\U0001f600", "\x1b[31m", "\u202e", "é"),
    *("{a,b}", "{1..3}", "$IFS", "~/", "/dev/null", "2>&1"),
)


class CommandDamager:
    def __init__(self) -> None:
        self._texts = [*corpus.load_everyday_commands(), *(case.command for case in corpus.load_cases())]

    def make_command(self, rng: random.Random) -> str:
        text = rng.choice(self._texts)
        for _ in range(rng.randint(0, 6)):
            at = rng.randint(0, len(text))
            change = rng.randrange(5)
            if change == 0:
                text = text[:at] + rng.choice(_FRAGMENTS) + text[at:]
            elif change == 1:
                text = text[:at] + text[at + rng.randint(1, 5) :]
            elif change == 2:
                other = rng.choice(self._texts)
                text = text[:at] + other[rng.randint(0, len(other)) :]
            elif change == 3:
                text = text[:at] + text[max(0, at - 8) : at] + text[at:]
            else:
                text = f"{text}{rng.choice(_FRAGMENTS)}{rng.choice(self._texts)}"
        return text[:1_000]
