"""Analyses programs whose arguments contain a small language (`find`, `sed`, `awk`, `tar`, `dd`, `jq`), to find the
files that they write and the commands that they run.
"""

import re
from collections.abc import Sequence
from typing import Final

from footplate.domain.text.linear_regex import LinearRegex
from footplate.gate.shell.argument_parser import parse_arguments
from footplate.gate.shell.effect_types import FileWrite, ProgramEffects
from footplate.gate.shell.programs import program_table
from footplate.gate.shell.word_expansion import UNKNOWN, Word


def _sed_pattern(d: str) -> str:
    """Return an expression for the text up to a delimiter. Implementations of sed differ on a delimiter inside
    brackets, so none is accepted there.
    """
    brackets = rf"\[\^?(?:\[:[a-z]+:\]|\\[^\]\[\n]|[^{d}\]\[\\\n])+\]"
    return rf"(?:[^{d}\\\n\[]|\\[^\n]|{brackets})*"


_SED_ADDRESS: Final = rf"(?:\d+|\$|/{_sed_pattern('/')}/I?|\d+~\d+)"
_SED_COMMAND: Final = (
    "(?:[pdqQ=lnNhHgGxD]|"
    + "|".join(rf"s{d}{_sed_pattern(d)}{d}(?:[^{d}\\\n]|\\[^\n])*{d}[gpiI0-9]*" for d in ("/", r"\|", "#", ",", "@"))
    + r"|[aic]\\?[ ]?[^\n;{}\\]*)"
)
_SED_STATEMENT: Final = rf"\s*(?:{_SED_ADDRESS}(?:\s*,\s*[+~]?{_SED_ADDRESS})?)?\s*!?\s*{_SED_COMMAND}\s*"
_SAFE_SED_SCRIPT: Final = LinearRegex(rf"{_SED_STATEMENT}(?:[;\n]{_SED_STATEMENT})*;?\s*", 1024 * 1024)
"""The part of sed's language that neither reads or writes files nor runs commands."""
_SED_IN_PLACE: Final = re.compile(r"(-[Enrsuz]*i)(.+)", re.DOTALL)
_UNSAFE_AWK: Final = re.compile(
    r"system|getline|\||@|print.*>|close|fflush|ARGV|ARGC|ENVIRON|PROCINFO|SYMTAB", re.DOTALL
)
_SAFE_AWK_OPTIONS: Final = frozenset({"-F", "-v", "--field-separator", "--assign", "--version", "--posix", "--csv"})
_AWK_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=")
_FIND_OPTIONS: Final = re.compile(r"-(?:[HLPEXdsxf]+|O\d*|D|-)")
"""Options of GNU and BSD find that may precede the directories."""
_FIND_RUNS: Final = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_FIND_WRITES: Final = frozenset({"-fprint", "-fprintf", "-fprint0", "-fls"})
_TAR_RUNS: Final = (
    "--to-command", "--checkpoint-action", "--use-compress-program", "-I", "--rsh-command", "--rmt-command", "-F",
    "--info-script", "--new-volume-script", "-P", "--absolute-names", "-T", "--files-from", "--force-local",
    "--index-file", "--listed-incremental", "-g", "--volno-file", "--remove-files",
)  # fmt: skip
_TAR_TAKES: Final = "fCTXIbFKLNVHg"
_JQ_IMPORTS: Final = re.compile(r"\b(?:import|include)\s*(?:#[^\n]*\n\s*)*[\"\0]")
_MAX_PROGRAM_CHARACTERS: Final = 500


def analyse_find(words: Sequence[Word], effects: ProgramEffects) -> None:
    starting = True
    for index, word in enumerate(words[1:], start=1):
        text = word.text
        if starting and not text.startswith(("-", "(", "!")):
            effects.reads.append(word)
            if word.may_split or text.startswith(UNKNOWN):
                effects.add_concern("an argument is only known at run time", is_visible=False)
            continue
        starting = starting and _FIND_OPTIONS.fullmatch(text) is not None
        if text in _FIND_RUNS:
            end = next((at for at in range(index, len(words)) if words[at].text in {";", "+"}), len(words))
            effects.runs.append((index + 1, tuple(words[index + 1 : end])))
            effects.add_concern(f"find {text} runs a program for each file", literal_words=index + 2)
        elif text == "-delete":
            effects.add_concern("find -delete removes files", is_visible=True, literal_words=index + 1)
            effects.writes.extend(FileWrite(each, needs_edit_rule=False) for each in effects.reads or [Word(".")])
        elif text in _FIND_WRITES:
            effects.writes.append(
                FileWrite(words[index + 1] if index + 1 < len(words) else Word(UNKNOWN), needs_edit_rule=True)
            )
        elif text == "-files0-from" or re.match(r"-[HLPEXdsx]*f[^a-z]", text):
            effects.add_concern(f"find {text} reads the directories to search from a file or option")
        elif text == "-samefile":
            effects.reads.extend(words[index + 1 : index + 2])
        elif (
            word.may_become_option
            or UNKNOWN in (text[:1] if text[:1] != "-" else text)
            or (word.globs and text[:1] in "*?[-")
        ):
            effects.add_concern("an argument is only known at run time", is_visible=False)
    effects.harmless = not effects.concerns and not effects.writes


def analyse_sed(words: Sequence[Word], effects: ProgramEffects) -> None:
    words, suffixes = _split_in_place_suffixes(words)
    arguments = parse_arguments(words[1:], takes="ef", takes_long=("--expression", "--file", "--line-length"))
    suffixes.extend(value for value in arguments.values("--in-place") if value is not None)
    scripts = list(arguments.values("-e", "--expression"))
    operands = arguments.operands
    if not scripts and not arguments.has("-f", "--file"):
        scripts, operands = [*operands[:1]], operands[1:]
    if arguments.has("-f", "--file"):
        effects.add_concern("sed reads its script from a file")
    if arguments.is_ambiguous:
        effects.add_concern("an argument is only known at run time")
    for script in scripts:
        if (
            script is None
            or not script.known
            or len(script.text) > _MAX_PROGRAM_CHARACTERS
            or not _SAFE_SED_SCRIPT.fullmatch(script.text)
        ):
            effects.add_concern("the sed script cannot be analysed")
    if arguments.has("-i", "-I", "--in-place"):
        effects.writes.extend(FileWrite(word, needs_edit_rule=True) for word in operands)
        if any(not suffix.known or "/" in suffix.text or "*" in suffix.text for suffix in suffixes):
            effects.add_concern("sed writes a backup to another directory")
    else:
        effects.reads.extend(operands)
        effects.harmless = not effects.concerns


def _split_in_place_suffixes(words: Sequence[Word]) -> tuple[list[Word], list[Word]]:
    """Remove the text after `-i` from the words. It is never another option, but the suffix of the backup's name.
    Returns the words and the suffixes.
    """
    remaining_words: list[Word] = []
    suffixes: list[Word] = []
    for index, word in enumerate(words):
        if word.text == "--":
            return [*remaining_words, *words[index:]], suffixes
        if (in_place_option := _SED_IN_PLACE.fullmatch(word.text)) is not None:
            suffixes.append(Word(in_place_option[2], word.globs))
            word = Word(in_place_option[1])  # noqa: PLW2901
        remaining_words.append(word)
    return remaining_words, suffixes


def analyse_awk(words: Sequence[Word], effects: ProgramEffects) -> None:
    arguments = parse_arguments(
        words[1:], takes="fFvilEeo", takes_long=("--file", "--assign", "--field-separator", "--source", "--include")
    )
    if any(name not in _SAFE_AWK_OPTIONS for name, _ in arguments.options):
        effects.add_concern("awk reads its program from a file or writes to a file")
    if arguments.is_ambiguous:
        effects.add_concern("an argument is only known at run time")
    program = arguments.operands[0] if arguments.operands else None
    if (
        program is None
        or not program.known
        or len(program.text) > _MAX_PROGRAM_CHARACTERS
        or _UNSAFE_AWK.search(program.text.replace("||", ""))
    ):
        effects.add_concern("the awk program cannot be analysed")
    effects.reads.extend(word for word in arguments.operands[1:] if not _AWK_ASSIGNMENT.match(word.text))
    effects.reads.extend(arguments.late_values)
    effects.harmless = not effects.concerns


def analyse_tar(words: Sequence[Word], effects: ProgramEffects) -> None:
    rest = list(words[1:])
    if rest and not rest[0].text.startswith("-"):
        rest = _split_tar_letters(rest[0], rest[1:])
    arguments = parse_arguments(
        rest, takes=_TAR_TAKES, takes_long=("--file", "--directory", "--exclude", "--use-compress-program")
    )
    for name in _TAR_RUNS:
        if arguments.has(name):
            effects.add_concern(f"tar {name} may run a program or read instructions from a file")
    if arguments.is_ambiguous:
        effects.add_concern("an argument is only known at run time")
    archives = [value or Word(UNKNOWN) for value in arguments.values("-f", "--file")]
    if any(":" in archive.text for archive in archives):
        effects.add_concern("tar connects to another machine")
    if arguments.has("-t", "--list") and not arguments.has("-x", "-c", "-r", "-u", "-A"):
        effects.reads.extend([*archives, *arguments.operands])
        effects.harmless = not effects.concerns
    elif arguments.has("-c", "--create") and not arguments.has("-x", "-C", "--directory"):
        effects.writes.extend(FileWrite(archive, needs_edit_rule=False) for archive in archives)
        effects.reads.extend(arguments.operands)
    else:
        effects.add_concern("the archive determines which files tar writes")


def _split_tar_letters(letters: Word, rest: Sequence[Word]) -> list[Word]:
    """`tar tfC a b` is `tar -t -f a -C b`."""
    options: list[Word] = []
    remaining = list(reversed(rest))
    for letter in letters.text:
        options.append(Word(f"-{letter}", letters.globs))
        if letter in _TAR_TAKES and remaining:
            options.append(remaining.pop())
    return [*options, *reversed(remaining)]


def analyse_dd(words: Sequence[Word], effects: ProgramEffects) -> None:
    for word in words[1:]:
        name, _, value = word.text.partition("=")
        if word.may_become_option:
            effects.add_concern("an argument is only known at run time")
        if name == "of":
            effects.writes.append(FileWrite(Word(value, word.globs), needs_edit_rule=False))
        elif name == "if":
            effects.reads.append(Word(value, word.globs))
        elif not word.known:
            effects.add_concern("an argument is only known at run time")


def analyse_jq(words: Sequence[Word], effects: ProgramEffects) -> None:
    """Add the effects of jq from the table. Its program may import other files, too."""
    program_table.analyse_listed_program("jq", words, effects)
    if any(_JQ_IMPORTS.search(word.text) for word in words[1:]):
        effects.add_concern("the jq program imports other files")
        effects.harmless = False
