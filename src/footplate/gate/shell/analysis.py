"""Determines the effects of a simple command from its program and arguments, including the commands that the program
runs.
"""

from typing import Final

from footplate.gate.shell import interpreters, wrappers
from footplate.gate.shell.deeds import Argv, Deeds
from footplate.gate.shell.parts import Stdin
from footplate.gate.shell.programs import builders, git, table, texts
from footplate.gate.shell.words import UNKNOWN, Word

_VERSIONED: Final = frozenset({
    "python", "python3", "node", "npm", "npx", "yarn", "pnpm", "bun", "deno", "ruby", "perl", "cargo", "rustc", "go",
    "java", "javac",
    "git", "docker", "make", "cmake", "gcc", "g++", "clang", "pip", "pip3", "uv", "ruff", "mypy", "black", "pytest",
    "tsc", "gh",
})  # fmt: skip
_SET: Final = frozenset(
    {"-e", "-u", "-x", "-o", "pipefail", "-eu", "-ex", "-eux", "-euo", "-euxo", "+e", "+u", "+x", "errexit", "nounset"}
)


def analyse(argv: Argv, stdin: Stdin, *, repeated: bool = False) -> Deeds:
    """Determine the effects of one program with its arguments. The caller analyses the commands that it runs."""
    deeds = Deeds()
    if not argv:
        return deeds
    first = argv[0]
    if not first.known or first.faults or not first.text:
        deeds.worry("the program is only known at run time")
        deeds.mentions.extend(argv[1:])
        return deeds
    name = first.text.rpartition("/")[2]
    if len(argv) == 2 and argv[1].text == "--version" and first.text in _VERSIONED:  # noqa: PLR2004
        deeds.harmless = True
        return deeds
    if name == "cd":
        _cd(argv, deeds, repeated=repeated)
    elif (special := _SPECIAL.get(name)) is not None:
        special(argv, deeds)
    elif not (
        wrappers.unwrap(name, argv, deeds)
        or interpreters.interpret(name, argv, stdin, deeds)
        or builders.build(name, argv, deeds)
        or table.describe(name, argv, deeds)
    ):
        if any(UNKNOWN in word.text for word in argv[1:]):
            deeds.worry("an argument is only known at run time", is_visible=True)
        deeds.unknown = True
        deeds.mentions.extend(argv[1:])
    if first.text != name:
        deeds.harmless = False  # a file at this path may be another program of that name
    return deeds


def _set(argv: Argv, deeds: Deeds) -> None:
    if any(word.text not in _SET for word in argv[1:]):
        deeds.worry("it changes options of the shell")
    deeds.harmless = not deeds.concerns


_SPECIAL: Final = {
    "git": git.describe, "set": _set,
    "find": texts.find, "sed": texts.sed, "gsed": texts.sed, "tar": texts.tar, "bsdtar": texts.tar, "gtar": texts.tar,
    "awk": texts.awk, "gawk": texts.awk, "mawk": texts.awk, "nawk": texts.awk, "dd": texts.dd,
    "jq": texts.jq,
}  # fmt: skip


def _cd(argv: Argv, deeds: Deeds, *, repeated: bool) -> None:
    operands = [word for word in argv[1:] if word.text not in {"-P", "-L", "--"}]
    target = operands[0] if operands else None
    if target is None or len(operands) > 1 or not target.known or target.text.startswith("-") or repeated:
        deeds.worry("the directory that it changes to cannot be determined")
        deeds.moves = Word(UNKNOWN)
    else:
        deeds.moves = target
        deeds.reads.append(target)
        deeds.harmless = True
