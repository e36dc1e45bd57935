"""Analyses programs that run code: shells, language interpreters and shell builtins. Only shell code is parsed; code in
other languages is not.
"""

import re
from collections.abc import Sequence
from typing import Final

from footplate.gate.shell.effect_types import ProgramEffects, join_words
from footplate.gate.shell.script_model import Stdin
from footplate.gate.shell.word_expansion import Word

SHELLS: Final = frozenset(
    {"sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "rbash", "fish", "csh", "tcsh", "pwsh", "su"}
)
_INLINE_CODE_OPTIONS: Final[dict[str, tuple[str, ...]]] = {
    "python": ("-c", "-i"), "node": ("-e", "-p", "--eval", "--print", "-r", "--require", "--import", "--loader", "-i"),
    "perl": ("-e", "-E", "-i", "-n", "-p", "-M", "-m", "-I"), "ruby": ("-e", "-i", "-n", "-p", "-r", "-I"),
    "php": ("-r", "-R", "-B", "-E", "-F", "-d", "-a"), "lua": ("-e", "-i", "-l"), "luajit": ("-e", "-i", "-l"),
    "deno": ("eval", "repl"), "bun": ("-e", "--eval", "-p", "--print", "-r",
    "--preload"), "Rscript": ("-e",), "R": ("-e",),
    "osascript": ("-e",), "tclsh": (), "wish": (), "expect": ("-c",), "ghci": (), "ghc": ("-e",), "julia": ("-e",
    "-E", "-L"),
    "elixir": ("-e",), "erl": ("-eval",), "scala": ("-e",), "groovy": ("-e",), "jshell": (), "swift": ("-e",),
    "guile": ("-c",), "racket": ("-e",), "sbcl": ("--eval", "--load"), "emacs": ("--eval", "-l", "--load", "-f",
    "--batch"),
    "vim": (), "vi": (), "nvim": (), "ex": (), "ed": (), "nano": (), "view": (), "gdb": ("-ex", "-x"), "sqlite3": (),
    "psql": (), "mysql": (), "mongo": (), "mongosh": (), "redis-cli": (), "bc": (), "dc": (), "m4": (), "gnuplot": (),
    "ipython": ("-c", "-i"), "ts-node": ("-e", "-p"), "tsx": ("-e", "-p"), "pypy": ("-c", "-i"), "jython": ("-c",),
    "cscript": (), "powershell": (), "cmd": (), "less": (), "more": (), "most": (), "man": (), "info": (), "screen": (),
    "tmux": (), "at": (), "batch": (), "crontab": (), "script": (), "nc": (), "ncat": (), "netcat": (), "socat": (),
    "telnet": (), "sftp": (), "ftp": (), "lftp": (), "visudo": (), "vipw": (), "tig": (), "lazygit": (), "fzf": (),
}  # fmt: skip
_PROGRAMS_WITH_COMMANDS: Final = frozenset({
    "vim", "vi", "nvim", "ex", "ed", "nano", "view", "emacs", "less", "more", "most", "man", "info", "screen", "tmux",
    "at",
    "batch", "crontab", "script", "nc", "ncat", "netcat", "socat", "telnet", "sftp", "ftp", "lftp", "visudo", "vipw",
    "tig",
    "lazygit", "fzf", "sqlite3", "psql", "mysql", "mongo", "mongosh", "redis-cli", "gnuplot", "gdb", "cmd",
    "powershell",
    "osascript", "jshell",
})  # fmt: skip
"""Interactive programs and others with their own command input. Their arguments do not show what they do."""
_OPTIONS_WITHOUT_VALUE: Final = re.compile(r"-[uBOvqw]+|--[\w-]+=.*", re.DOTALL)
"""Options that take no separate value in any of these languages, so the next word is the script."""
_VERSIONED_NAME: Final = re.compile(r"(python|pypy|perl|ruby|php|lua|node)[\d.]+(?:-\d+)?")
_VERSION_CHARACTERS: Final = frozenset("0123456789.")
_BUILTIN_CONCERNS: Final = {
    "eval": "it runs a string as a command", ".": "it runs a file in the current shell",
    "source": "it runs a file in the current shell",
    "trap": "it sets a command to run later", "alias": "it defines an alias",
    "unalias": "it changes aliases",
    "bind": "it changes the configuration of the shell", "complete": "it changes the configuration of the shell",
    "compgen": "it may run a shell function",
    "enable": "it changes which builtins are enabled", "hash": "it changes where programs are found",
    "shopt": "it changes options of the shell",
    "declare": "it changes how variables are evaluated", "typeset": "it changes how variables are evaluated",
    "local": "it changes variables", "readonly": "it changes variables", "unset": "it changes variables",
    "let": "it evaluates variables as arithmetic expressions",
    "mapfile": "it may run a shell function",
    "readarray": "it may run a shell function", "history": "it may write the shell history",
    "fc": "it runs commands from the shell history",
    "pushd": "it changes the directory", "popd": "it changes the directory", "suspend": "it suspends the shell",
    "dirs": "it changes the directory", "printenv": "it prints environment variables, which may contain secrets",
}  # fmt: skip


_NAME_BUILTINS: Final = frozenset({"read", "getopts"})
"""Built-in commands that evaluate a name such as `a[$(command)]`."""


def analyse_interpreter(name: str, words: Sequence[Word], stdin: Stdin, effects: ProgramEffects) -> bool:
    """Add the effects of a program that runs code. Returns False if the program is none of these."""
    if (concern := _BUILTIN_CONCERNS.get(name)) is not None:
        _analyse_builtin(name, words, concern, effects)
        return True
    if name in _NAME_BUILTINS and any("[" in word.text or not word.known for word in words[1:]):
        effects.add_concern("it evaluates a variable name, which may run a command")
        return False
    if name in SHELLS:
        _analyse_shell(name, words, stdin, effects)
        return True
    language = _VERSIONED_NAME.fullmatch(name) if name[-1:] in _VERSION_CHARACTERS else None
    known = language[1] if language else name
    if known not in _INLINE_CODE_OPTIONS:
        return False
    if known in _PROGRAMS_WITH_COMMANDS:
        effects.add_concern(f"{name} can run other commands")
        effects.mentions.extend(words[1:])
        return True
    _analyse_language(name, _INLINE_CODE_OPTIONS[known], words, effects)
    return True


def _analyse_builtin(name: str, words: Sequence[Word], concern: str, effects: ProgramEffects) -> None:
    is_visible = name in {"eval", "trap"} and all(word.known for word in words)
    effects.add_concern(concern, is_visible=is_visible)
    if name == "eval":
        effects.scripts.append(join_words(words[1:]))
    elif name == "trap":
        effects.scripts.extend(word.text for word in words[1:] if not word.text.startswith("-"))
    elif name == "alias":
        effects.scripts.extend(word.text.partition("=")[2] for word in words[1:])
    else:
        effects.mentions.extend(words[1:])


def _analyse_shell(name: str, words: Sequence[Word], stdin: Stdin, effects: ProgramEffects) -> None:
    for index, word in enumerate(words[1:], start=1):
        text = word.text
        if re.fullmatch(r"-[A-Za-z]*c", text) or text == "--command":
            code = next((each for each in words[index + 1 :] if not each.text.startswith(("-", "+"))), None)
            if code is None or not code.known:
                effects.add_concern(f"{name} runs code that is only known at run time")
            else:
                effects.add_concern(f"{name} runs code from the command line", is_visible=len(words) <= index + 2)
                effects.scripts.append(code.text)
            return
        if not text.startswith(("-", "+")) or text == "-":
            break
        if text not in {"-e", "-u", "-x", "-eu", "-ex", "-eux"}:
            effects.add_concern(f"{name} is started with the option {text}")
    else:
        if stdin is not Stdin.INHERITED or len(words) == 1:
            effects.add_concern(f"{name} runs code from its standard input")
            return
    operands = [word for word in words[1:] if not word.text.startswith(("-", "+"))]
    if not operands or not operands[0].known or operands[0].text.startswith(("/dev/", "/proc/")) or name == "su":
        effects.add_concern(f"{name} runs code from its standard input")
    effects.reads.extend(operands[:1])
    effects.mentions.extend(operands[1:])


def _analyse_language(name: str, code_options: tuple[str, ...], words: Sequence[Word], effects: ProgramEffects) -> None:
    may_take_value = False
    for index, word in enumerate(words[1:], start=1):
        text = word.text
        if not word.known:
            effects.add_concern("an argument is only known at run time")
            break
        if _takes_code(text, code_options):
            effects.add_concern(f"{name} runs code from the command line")
            return
        if text == "-" or text.startswith(("/dev/", "/proc/")):
            effects.add_concern(f"{name} runs code from its standard input")
            return
        if text == "-m" and name.startswith(("python", "pypy")):
            effects.runs.append((index + 1, tuple(words[index + 1 :])))
            return
        if not text.startswith("-"):
            if may_take_value and any(_takes_code(each.text, code_options) for each in words[index + 1 :]):
                effects.add_concern(f"{name} may run code from the command line")
            effects.reads.append(word)
            effects.mentions.extend(words[index + 1 :])
            return
        may_take_value = not _OPTIONS_WITHOUT_VALUE.fullmatch(text)
        effects.mentions.append(word)
        if text in {"--version", "-V", "--help", "-h"} and len(words) == 2:  # noqa: PLR2004
            effects.harmless = True
            return
    effects.add_concern(f"{name} runs code from its standard input")


def _takes_code(text: str, code_options: tuple[str, ...]) -> bool:
    """Return whether the value of this option is code, also if its letter follows other letters (`-ne`)."""
    if re.fullmatch(r"-[A-Za-z]{2,}", text) and any(f"-{letter}" in code_options for letter in text[1:]):
        return True
    return text in code_options or any(
        (text.startswith(option) and not option.startswith("--") and len(option) == 2)  # noqa: PLR2004
        or (option.startswith("--") and text.startswith(f"{option}="))
        for option in code_options
    )
