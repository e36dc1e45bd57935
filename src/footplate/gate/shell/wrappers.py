"""Analyses wrappers: programs such as `env`, `xargs` and `ssh` that run another program named in their arguments."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from footplate.gate.shell.effect_types import ProgramEffects, join_words
from footplate.gate.shell.word_expansion import Word


class Wrapper(NamedTuple):
    """The arguments of a wrapper before the program that it runs."""

    takes: str = ""
    """The letters of short options with a value."""
    skips: int = 0
    """The number of operands before the program."""
    long: tuple[str, ...] = ()
    """Long options whose value is the next word."""
    joins: bool = False
    """Whether it passes the rest to a shell as one text."""


WRAPPERS: Final = {
    "env": Wrapper("uC", long=("--unset", "--chdir")),
    "nohup": Wrapper(),
    "setsid": Wrapper(),
    "time": Wrapper("fo"),
    "command": Wrapper(),
    "builtin": Wrapper(),
    "exec": Wrapper("a"),
    "coproc": Wrapper(),
    "jobs": Wrapper(),
    "nice": Wrapper("n", long=("--adjustment",)),
    "noglob": Wrapper(),
    "ionice": Wrapper("cnpPu"),
    "timeout": Wrapper("ks", 1, ("--signal", "--kill-after")),
    "stdbuf": Wrapper("ioe"),
    "chrt": Wrapper("", 1),
    "taskset": Wrapper("", 1),
    "numactl": Wrapper("CNmi"),
    "cpulimit": Wrapper("lpe"),
    "sudo": Wrapper("ugpCThrtDR", long=("--user", "--group", "--prompt", "--host", "--chdir")),
    "doas": Wrapper("uC"),
    "xargs": Wrapper("IEdLnPsa", long=("--max-args", "--max-procs", "--arg-file", "--delimiter", "--max-lines")),
    "parallel": Wrapper("jaNIn", joins=True),
    "watch": Wrapper("n", joins=True),
    "flock": Wrapper("wE", 1),
    "chroot": Wrapper("", 1),
    "unshare": Wrapper(),
    "nsenter": Wrapper("tSG"),
    "strace": Wrapper("eopsuaEPO"),
    "ltrace": Wrapper("eopsualn"),
    "valgrind": Wrapper(),
    "perf": Wrapper("eop", 1),
    "caffeinate": Wrapper("tw"),
    "fakeroot": Wrapper("lbis"),
    "proxychains": Wrapper("f"),
    "proxychains4": Wrapper("f"),
    "torsocks": Wrapper("aPup"),
    "xvfb-run": Wrapper("efnps"),
    "dbus-run-session": Wrapper(),
    "systemd-run": Wrapper("puMH"),
    "busybox": Wrapper(),
    "toybox": Wrapper(),
    "unbuffer": Wrapper(),
    "npx": Wrapper("p", long=("--package",)),
    "bunx": Wrapper(),
    "pnpx": Wrapper(),
    "uvx": Wrapper("p", long=("--from", "--with", "--python")),
    "entr": Wrapper(),
    "setarch": Wrapper("", 1),
    "linux64": Wrapper(),
    "linux32": Wrapper(),
    "setpriv": Wrapper(long=("--reuid", "--regid", "--groups")),
    "capsh": Wrapper(),
    "runuser": Wrapper("uglG"),
    "bwrap": Wrapper(),
    "firejail": Wrapper(),
    "faketime": Wrapper("f", 1),
    "dotenv": Wrapper("f"),
    "cgexec": Wrapper("g"),
    "prlimit": Wrapper(),
    "choom": Wrapper("np"),
    "daemonize": Wrapper("aceolpu"),
    "start-stop-daemon": Wrapper(),
    "ssh": Wrapper("bcDEeFIiJLlmOopQRSWw", 1, joins=True),
    "xdg-terminal-exec": Wrapper(),
    "rlwrap": Wrapper("fHlNs"),
    "gdb": Wrapper("x"),
    "hyperfine": Wrapper("wmMrSnu", joins=True),
    "pkexec": Wrapper(long=("--user",)),
    "sg": Wrapper("", 1, joins=True),
    "ssh-agent": Wrapper("atEOP"),
    "lxc-attach": Wrapper("nasvePf", long=("--name",)),
    "nix-shell": Wrapper("pAIjE"),
    "watchexec": Wrapper("wWefidsNo", joins=True),
    "nodemon": Wrapper("xewidCV", joins=True),
    "concurrently": Wrapper("nmcpgkslt", joins=True),
}
RUN_SUBCOMMANDS: Final = {
    "uv": ("run",),
    "poetry": ("run",),
    "pipenv": ("run",),
    "pdm": ("run",),
    "hatch": ("run",),
    "rye": ("run",),
    "conda": ("run",),
    "mamba": ("run",),
    "bundle": ("exec",),
    "npm": ("exec", "x"),
    "yarn": ("exec", "dlx"),
    "pnpm": ("exec", "dlx"),
    "bun": ("x",),
    "pipx": ("run",),
    "direnv": ("exec",),
    "mise": ("exec", "x"),
    "devbox": ("run",),
    "doppler": ("run",),
    "op": ("run",),
    "asdf": ("exec",),
    "rbenv": ("exec",),
    "pyenv": ("exec",),
    "nodenv": ("exec",),
    "cmake": ("-E",),
    "nix": ("shell", "develop", "run"),
    "rustup": ("run",),
    "dvc": ("run",),
    "kubectl": ("exec",),
    "heroku": ("run",),
    "vagrant": ("ssh",),
}
"""Programs with a subcommand that runs another program."""
_RUNNER_OPTIONS: Final = Wrapper(
    "pnC",
    long=("--with", "--python", "--project", "--directory", "--package", "--from", "--env-file", "--extra", "--group"),
)
_EXTRA_CONCERNS: Final = {
    "ssh": "it runs on another machine",
    "xargs": "it receives arguments that are only known at run time",
    "parallel": "it receives arguments that are only known at run time",
}
_COMMAND_OPTIONS: Final = ("-c", "--command")
_COMMAND_OPTIONS_BY_PROGRAM: Final = {"nix-shell": ("--run", "--command"), "nodemon": ("-x", "--exec")}
"""Options whose value is a command."""
_DYNAMIC_LOADER: Final = re.compile(r"ld(?:-linux[\w.-]*|-musl[\w.-]*|\.so(?:\.\d+)?)")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")


def analyse_wrapper(name: str, words: Sequence[Word], effects: ProgramEffects) -> bool:
    """Add the effects of a wrapper, including the command that it runs. Returns False if it is not a wrapper."""
    wrapper, start = _find_wrapper(name, words)
    if wrapper is None:
        return False
    if name == "command" and len(words) > 1 and words[1].text in {"-v", "-V"}:
        effects.harmless = True
        return True
    if name == "jobs" and all(word.text in {"-l", "-n", "-p", "-r", "-s"} for word in words[1:]):
        effects.harmless = True
        return True
    _add_command_texts(name, words, effects)
    at = _find_program(words, start, wrapper)
    if at is None:
        effects.add_concern(
            f"{name} runs a program that cannot be determined", is_visible=name == "env" and len(words) == 1
        )
        return True
    effects.add_concern(f"{name} runs another program", is_visible=True, literal_words=at + 1)
    effects.mentions.extend(words[start:at])
    for word in words[start:at]:
        if _ASSIGNMENT.match(word.text):
            effects.add_concern(f"it sets {word.text.partition('=')[0]}", literal_words=at + 1)
        elif not word.known:
            effects.add_concern("an argument is only known at run time")
    effects.runs.append((at, tuple(words[at:])))
    if wrapper.joins:
        effects.scripts.append(join_words(words[at:]))
    if (extra_concern := _EXTRA_CONCERNS.get(name)) is not None:
        effects.add_concern(extra_concern)
    return True


def _find_wrapper(name: str, words: Sequence[Word]) -> tuple[Wrapper | None, int]:
    """Return the wrapper with this name, and the index of the first word that may be the program."""
    if (at := _find_run_subcommand(name, words)) is not None:
        return _RUNNER_OPTIONS, at + (2 if name == "direnv" else 1)
    return WRAPPERS.get(name) or (Wrapper() if name[:2] == "ld" and _DYNAMIC_LOADER.fullmatch(name) else None), 1


def _find_run_subcommand(name: str, words: Sequence[Word]) -> int | None:
    """Return the index of the subcommand that runs a program. It may be after options, because it is not known which of
    them have a value.
    """
    if name not in RUN_SUBCOMMANDS or len(words) == 1:
        return None
    if words[1].text in RUN_SUBCOMMANDS[name]:
        return 1
    if not words[1].text.startswith("-"):
        return None
    return next((at for at, word in enumerate(words) if at and word.text in RUN_SUBCOMMANDS[name]), None)


def _add_command_texts(name: str, words: Sequence[Word], effects: ProgramEffects) -> None:
    """Add the commands that are passed as one text."""
    effects.scripts.extend(
        after.text
        for word, after in pairwise(words)
        if word.text in _COMMAND_OPTIONS_BY_PROGRAM.get(name, _COMMAND_OPTIONS)
    )
    if name == "env":
        _add_split_string(words, effects)


def _find_program(words: Sequence[Word], start: int, wrapper: Wrapper) -> int | None:
    """Return the index of the program that the wrapper runs."""
    at, skips = start, wrapper.skips
    while at < len(words):
        text = words[at].text
        if text == "--":
            return at + 1 + skips if at + 1 + skips < len(words) else None
        if text.startswith("--"):
            at += 2 if "=" not in text and text in wrapper.long else 1
        elif text.startswith("-") and len(text) > 1:
            letters = text[1:]
            first = next((index for index, letter in enumerate(letters) if letter in wrapper.takes), None)
            at += 2 if first is not None and first == len(letters) - 1 else 1
        elif _ASSIGNMENT.match(text):
            at += 1
        elif skips:
            skips -= 1
            at += 1
        else:
            return at
    return None


def _add_split_string(words: Sequence[Word], effects: ProgramEffects) -> None:
    for index, word in enumerate(words[1:], start=1):
        text = word.text
        if text.startswith(("-S", "--split-string", "-vS", "-iS")):
            rest = text.partition("=")[2] if "=" in text[:15] and text.startswith("--") else text[2:]
            effects.scripts.append(" ".join([rest, *(each.text for each in words[index + 1 :])]).strip())
            effects.add_concern("env runs a string as a command")
