"""Analyses the program and arguments of a simple command, to find its effects and the other commands that it runs."""

from typing import Final

from footplate.gate.shell import interpreters, wrappers
from footplate.gate.shell.effect_types import Argv, ProgramEffects
from footplate.gate.shell.programs import build_tools, git, mini_languages, program_table
from footplate.gate.shell.script_model import Stdin
from footplate.gate.shell.word_expansion import UNKNOWN, Word

_PROGRAMS_WITH_VERSION_OPTION: Final = frozenset({
    "python", "python3", "node", "npm", "npx", "yarn", "pnpm", "bun", "deno", "ruby", "perl", "cargo", "rustc", "go",
    "java", "javac",
    "git", "docker", "make", "cmake", "gcc", "g++", "clang", "pip", "pip3", "uv", "ruff", "mypy", "black", "pytest",
    "tsc", "gh",
})  # fmt: skip
_SAFE_SET_OPTIONS: Final = frozenset(
    {"-e", "-u", "-x", "-o", "pipefail", "-eu", "-ex", "-eux", "-euo", "-euxo", "+e", "+u", "+x", "errexit", "nounset"}
)


def analyse_program(argv: Argv, stdin: Stdin, *, repeated: bool = False) -> ProgramEffects:
    """Determine the effects of one program with its arguments. The caller analyses the commands that it runs."""
    effects = ProgramEffects()
    if not argv:
        return effects
    first = argv[0]
    if not first.known or first.faults or not first.text:
        effects.add_concern("the program is only known at run time")
        effects.mentions.extend(argv[1:])
        return effects
    name = first.text.rpartition("/")[2]
    if len(argv) == 2 and argv[1].text == "--version" and first.text in _PROGRAMS_WITH_VERSION_OPTION:  # noqa: PLR2004
        effects.harmless = True
        return effects
    if name == "cd":
        _analyse_cd(argv, effects, repeated=repeated)
    elif (analyser := _ANALYSERS.get(name)) is not None:
        analyser(argv, effects)
    elif not (
        wrappers.analyse_wrapper(name, argv, effects)
        or interpreters.analyse_interpreter(name, argv, stdin, effects)
        or build_tools.analyse_build_tool(name, argv, effects)
        or program_table.analyse_listed_program(name, argv, effects)
    ):
        if any(UNKNOWN in word.text for word in argv[1:]):
            effects.add_concern("an argument is only known at run time", is_visible=True)
        effects.is_unknown_program = True
        effects.mentions.extend(argv[1:])
    if first.text != name:
        effects.harmless = False  # a file at this path may be another program of that name
    return effects


def _analyse_set(argv: Argv, effects: ProgramEffects) -> None:
    if any(word.text not in _SAFE_SET_OPTIONS for word in argv[1:]):
        effects.add_concern("it changes options of the shell")
    effects.harmless = not effects.concerns


_ANALYSERS: Final = {
    "git": git.analyse_git, "set": _analyse_set,
    "find": mini_languages.analyse_find, "dd": mini_languages.analyse_dd, "jq": mini_languages.analyse_jq,
    **dict.fromkeys(("sed", "gsed"), mini_languages.analyse_sed),
    **dict.fromkeys(("tar", "bsdtar", "gtar"), mini_languages.analyse_tar),
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), mini_languages.analyse_awk),
}  # fmt: skip


def _analyse_cd(argv: Argv, effects: ProgramEffects, *, repeated: bool) -> None:
    operands = [word for word in argv[1:] if word.text not in {"-P", "-L", "--"}]
    target = operands[0] if operands else None
    if target is None or len(operands) > 1 or not target.known or target.text.startswith("-") or repeated:
        effects.add_concern("the directory that it changes to cannot be determined")
        effects.new_directory = Word(UNKNOWN)
    else:
        effects.new_directory = target
        effects.reads.append(target)
        effects.harmless = True
