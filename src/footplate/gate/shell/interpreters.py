"""Analyses programs that run code: shells, language interpreters and shell builtins. Of the code in a command, only
shell code is parsed.
"""

import re
from collections.abc import Sequence
from typing import Final

from footplate.gate.shell.deeds import Deeds, plain
from footplate.gate.shell.parts import Stdin
from footplate.gate.shell.words import Word

SHELLS: Final = frozenset(
    {"sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "rbash", "fish", "csh", "tcsh", "pwsh", "su"}
)
_LANGUAGES: Final[dict[str, tuple[str, ...]]] = {
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
_ALWAYS: Final = frozenset({
    "vim", "vi", "nvim", "ex", "ed", "nano", "view", "emacs", "less", "more", "most", "man", "info", "screen", "tmux",
    "at",
    "batch", "crontab", "script", "nc", "ncat", "netcat", "socat", "telnet", "sftp", "ftp", "lftp", "visudo", "vipw",
    "tig",
    "lazygit", "fzf", "sqlite3", "psql", "mysql", "mongo", "mongosh", "redis-cli", "gnuplot", "gdb", "cmd",
    "powershell",
    "osascript", "jshell",
})  # fmt: skip
"""Interactive programs and others with their own command input. Their arguments do not show what they do."""
_FLAGS: Final = re.compile(r"-[uBOvqw]+|--[\w-]+=.*", re.DOTALL)
"""Options that take no separate value in any of these languages, so the next word is the script."""
_NUMBERED: Final = re.compile(r"(python|pypy|perl|ruby|php|lua|node)[\d.]+(?:-\d+)?")
_LAST: Final = frozenset("0123456789.")
_BUILT_IN: Final = {
    "eval": "it evaluates a text as a command", ".": "it runs a file in the current shell",
    "source": "it runs a file in the current shell",
    "trap": "it schedules a command to run later", "alias": "it gives a command another name",
    "unalias": "it changes aliases",
    "bind": "it changes the configuration of the shell", "complete": "it changes the configuration of the shell",
    "compgen": "it may run a function",
    "enable": "it changes which builtins are enabled", "hash": "it changes where programs are found",
    "shopt": "it changes options of the shell",
    "declare": "it changes how variables are interpreted", "typeset": "it changes how variables are interpreted",
    "local": "it changes variables",
    "readonly": "it changes variables", "unset": "it changes variables", "let": "it evaluates variables",
    "mapfile": "it may run a function",
    "readarray": "it may run a function", "history": "it may write the shell history", "fc": "it runs earlier commands",
    "pushd": "it changes the directory", "popd": "it changes the directory", "suspend": "it stops the shell",
    "dirs": "it changes the directory", "printenv": "it prints environment variables, which may contain secrets",
}  # fmt: skip


def interpret(name: str, words: Sequence[Word], stdin: Stdin, deeds: Deeds) -> bool:
    """Add the effects of a program that runs code. Returns False if the program is none of these."""
    if (worry := _BUILT_IN.get(name)) is not None:
        _built_in(name, words, worry, deeds)
        return True
    if name in SHELLS:
        _shell(name, words, stdin, deeds)
        return True
    language = _NUMBERED.fullmatch(name) if name[-1:] in _LAST else None
    known = language[1] if language else name
    if known not in _LANGUAGES:
        return False
    if known in _ALWAYS:
        deeds.worry(f"{name} has its own commands")
        deeds.mentions.extend(words[1:])
        return True
    _language(name, _LANGUAGES[known], words, deeds)
    return True


def _built_in(name: str, words: Sequence[Word], worry: str, deeds: Deeds) -> None:
    seen = name in {"eval", "trap"} and all(word.known for word in words)
    deeds.worry(worry, is_visible=seen)
    if name == "eval":
        deeds.scripts.append(plain(words[1:]))
    elif name == "trap":
        deeds.scripts.extend(word.text for word in words[1:] if not word.text.startswith("-"))
    elif name == "alias":
        deeds.scripts.extend(word.text.partition("=")[2] for word in words[1:])
    else:
        deeds.mentions.extend(words[1:])


def _shell(name: str, words: Sequence[Word], stdin: Stdin, deeds: Deeds) -> None:
    for index, word in enumerate(words[1:], start=1):
        text = word.text
        if re.fullmatch(r"-[A-Za-z]*c", text) or text == "--command":
            code = next((each for each in words[index + 1 :] if not each.text.startswith(("-", "+"))), None)
            if code is None or not code.known:
                deeds.worry(f"{name} runs code that is only known at run time")
            else:
                deeds.worry(f"{name} runs code that is part of the command", is_visible=len(words) <= index + 2)
                deeds.scripts.append(code.text)
            return
        if not text.startswith(("-", "+")) or text == "-":
            break
        if text not in {"-e", "-u", "-x", "-eu", "-ex", "-eux"}:
            deeds.worry(f"{name} is started with the option {text}")
    else:
        if stdin is not Stdin.OURS or len(words) == 1:
            deeds.worry(f"{name} runs the code that it reads")
            return
    operands = [word for word in words[1:] if not word.text.startswith(("-", "+"))]
    if not operands or not operands[0].known or operands[0].text.startswith(("/dev/", "/proc/")) or name == "su":
        deeds.worry(f"{name} runs the code that it reads")
    deeds.reads.extend(operands[:1])
    deeds.mentions.extend(operands[1:])


def _language(name: str, inline: tuple[str, ...], words: Sequence[Word], deeds: Deeds) -> None:
    doubtful = False
    for index, word in enumerate(words[1:], start=1):
        text = word.text
        if not word.known:
            deeds.worry("an argument is only known at run time")
            break
        if _inline(text, inline):
            deeds.worry(f"{name} runs code that is part of the command")
            return
        if text == "-" or text.startswith(("/dev/", "/proc/")):
            deeds.worry(f"{name} runs the code that it reads")
            return
        if text == "-m" and name.startswith(("python", "pypy")):
            deeds.runs.append((index + 1, tuple(words[index + 1 :])))
            return
        if not text.startswith("-"):
            if doubtful and any(_inline(each.text, inline) for each in words[index + 1 :]):
                deeds.worry(f"{name} may run code that is part of the command")
            deeds.reads.append(word)
            deeds.mentions.extend(words[index + 1 :])
            return
        doubtful = not _FLAGS.fullmatch(text)
        deeds.mentions.append(word)
        if text in {"--version", "-V", "--help", "-h"} and len(words) == 2:  # noqa: PLR2004
            deeds.harmless = True
            return
    deeds.worry(f"{name} runs the code that it reads")


def _inline(text: str, inline: tuple[str, ...]) -> bool:
    """Return whether the value of this option is code, also if its letter follows other letters (`-ne`)."""
    if re.fullmatch(r"-[A-Za-z]{2,}", text) and any(f"-{letter}" in inline for letter in text[1:]):
        return True
    return text in inline or any(
        (text.startswith(option) and not option.startswith("--") and len(option) == 2)  # noqa: PLR2004
        or (option.startswith("--") and text.startswith(f"{option}="))
        for option in inline
    )
