"""Analyses programs whose arguments contain a small language: `find`, `sed`, `awk`, `tar`, `dd` and `jq`."""

import re
from collections.abc import Sequence
from typing import Final

from footplate.domain.linear_regex import LinearRegex
from footplate.gate.shell.deeds import Deeds, Write
from footplate.gate.shell.options import split
from footplate.gate.shell.programs import table
from footplate.gate.shell.words import UNKNOWN, Word


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
_SED_ONE: Final = rf"\s*(?:{_SED_ADDRESS}(?:\s*,\s*[+~]?{_SED_ADDRESS})?)?\s*!?\s*{_SED_COMMAND}\s*"
_SED: Final = LinearRegex(rf"{_SED_ONE}(?:[;\n]{_SED_ONE})*;?\s*", 1024 * 1024)
"""The part of sed's language that neither reads or writes files nor runs commands."""
_SED_IN_PLACE: Final = re.compile(r"(-[Enrsuz]*i)(.+)", re.DOTALL)
_AWK_BAD: Final = re.compile(r"system|getline|\||@|print.*>|close|fflush|ARGV|ARGC|ENVIRON|PROCINFO|SYMTAB", re.DOTALL)
_AWK_OPTIONS: Final = frozenset({"-F", "-v", "--field-separator", "--assign", "--version", "--posix", "--csv"})
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
_LONGEST_PROGRAM: Final = 500


def find(words: Sequence[Word], deeds: Deeds) -> None:
    starting = True
    for index, word in enumerate(words[1:], start=1):
        text = word.text
        if starting and not text.startswith(("-", "(", "!")):
            deeds.reads.append(word)
            if word.splits or text.startswith(UNKNOWN):
                deeds.worry("an argument is only known at run time", is_visible=False)
            continue
        starting = starting and _FIND_OPTIONS.fullmatch(text) is not None
        if text in _FIND_RUNS:
            end = next((at for at in range(index, len(words)) if words[at].text in {";", "+"}), len(words))
            deeds.runs.append((index + 1, tuple(words[index + 1 : end])))
            deeds.worry(f"find {text} runs a program for each file", literal_words=index + 2)
        elif text == "-delete":
            deeds.worry("find -delete removes files", is_visible=True, literal_words=index + 1)
            deeds.writes.extend(Write(each, asked_for=False) for each in deeds.reads or [Word(".")])
        elif text in _FIND_WRITES:
            deeds.writes.append(Write(words[index + 1] if index + 1 < len(words) else Word(UNKNOWN), asked_for=True))
        elif text == "-files0-from" or re.match(r"-[HLPEXdsx]*f[^a-z]", text):
            deeds.worry(f"find {text} searches directories that are listed elsewhere")
        elif text == "-samefile":
            deeds.reads.extend(words[index + 1 : index + 2])
        elif word.loose or UNKNOWN in (text[:1] if text[:1] != "-" else text) or (word.globs and text[:1] in "*?[-"):
            deeds.worry("an argument is only known at run time", is_visible=False)
    deeds.harmless = not deeds.concerns and not deeds.writes


def sed(words: Sequence[Word], deeds: Deeds) -> None:
    words, suffixes = _in_place(words)
    given = split(words[1:], takes="ef", takes_long=("--expression", "--file", "--line-length"))
    suffixes.extend(value for value in given.values("--in-place") if value is not None)
    scripts = list(given.values("-e", "--expression"))
    operands = given.operands
    if not scripts and not given.has("-f", "--file"):
        scripts, operands = [*operands[:1]], operands[1:]
    if given.has("-f", "--file"):
        deeds.worry("sed reads its script from a file")
    if given.unclear:
        deeds.worry("an argument is only known at run time")
    for script in scripts:
        if script is None or not script.known or len(script.text) > _LONGEST_PROGRAM or not _SED.fullmatch(script.text):
            deeds.worry("the sed script cannot be analysed")
    if given.has("-i", "-I", "--in-place"):
        deeds.writes.extend(Write(word, asked_for=True) for word in operands)
        if any(not suffix.known or "/" in suffix.text or "*" in suffix.text for suffix in suffixes):
            deeds.worry("sed writes the backup to another directory")
    else:
        deeds.reads.extend(operands)
        deeds.harmless = not deeds.concerns


def _in_place(words: Sequence[Word]) -> tuple[list[Word], list[Word]]:
    """Remove the text after `-i` from the words. It is never another option, but the suffix of the backup's name.
    Returns the words and the suffixes.
    """
    found: list[Word] = []
    suffixes: list[Word] = []
    for index, word in enumerate(words):
        if word.text == "--":
            return [*found, *words[index:]], suffixes
        if (given := _SED_IN_PLACE.fullmatch(word.text)) is not None:
            suffixes.append(Word(given[2], word.globs))
            word = Word(given[1])  # noqa: PLW2901
        found.append(word)
    return found, suffixes


def awk(words: Sequence[Word], deeds: Deeds) -> None:
    given = split(
        words[1:], takes="fFvilEeo", takes_long=("--file", "--assign", "--field-separator", "--source", "--include")
    )
    if any(name not in _AWK_OPTIONS for name, _ in given.options):
        deeds.worry("awk reads its program from a file, or writes a file")
    if given.unclear:
        deeds.worry("an argument is only known at run time")
    program = given.operands[0] if given.operands else None
    if (
        program is None
        or not program.known
        or len(program.text) > _LONGEST_PROGRAM
        or _AWK_BAD.search(program.text.replace("||", ""))
    ):
        deeds.worry("the awk program cannot be analysed")
    deeds.reads.extend(word for word in given.operands[1:] if not _AWK_ASSIGNMENT.match(word.text))
    deeds.reads.extend(given.late)
    deeds.harmless = not deeds.concerns


def tar(words: Sequence[Word], deeds: Deeds) -> None:
    rest = list(words[1:])
    if rest and not rest[0].text.startswith("-"):
        rest = _apart(rest[0], rest[1:])
    given = split(rest, takes=_TAR_TAKES, takes_long=("--file", "--directory", "--exclude", "--use-compress-program"))
    for name in _TAR_RUNS:
        if given.has(name):
            deeds.worry(f"tar {name} runs something, or reads instructions from elsewhere")
    if given.unclear:
        deeds.worry("an argument is only known at run time")
    archives = [value or Word(UNKNOWN) for value in given.values("-f", "--file")]
    if any(":" in archive.text for archive in archives):
        deeds.worry("tar connects to another machine")
    if given.has("-t", "--list") and not given.has("-x", "-c", "-r", "-u", "-A"):
        deeds.reads.extend([*archives, *given.operands])
        deeds.harmless = not deeds.concerns
    elif given.has("-c", "--create") and not given.has("-x", "-C", "--directory"):
        deeds.writes.extend(Write(archive, asked_for=False) for archive in archives)
        deeds.reads.extend(given.operands)
    else:
        deeds.worry("the archive determines which files tar writes")


def _apart(letters: Word, rest: Sequence[Word]) -> list[Word]:
    """`tar tfC a b` is `tar -t -f a -C b`."""
    found, left = [], list(reversed(rest))
    for letter in letters.text:
        found.append(Word(f"-{letter}", letters.globs))
        if letter in _TAR_TAKES and left:
            found.append(left.pop())
    return [*found, *reversed(left)]


def dd(words: Sequence[Word], deeds: Deeds) -> None:
    for word in words[1:]:
        name, _, value = word.text.partition("=")
        if word.loose:
            deeds.worry("an argument is only known at run time")
        if name == "of":
            deeds.writes.append(Write(Word(value, word.globs), asked_for=False))
        elif name == "if":
            deeds.reads.append(Word(value, word.globs))
        elif not word.known:
            deeds.worry("an argument is only known at run time")


def jq(words: Sequence[Word], deeds: Deeds) -> None:
    """Add the effects of jq from the table. Its program may import other files, too."""
    table.describe("jq", words, deeds)
    if any(_JQ_IMPORTS.search(word.text) for word in words[1:]):
        deeds.worry("the jq program imports other files")
        deeds.harmless = False
