"""Analyses build tools and package managers such as `make`, `npm`, `docker`, `go` and `cargo`.

These programs run commands that the project configures. Some of their options and subcommands run other commands or
write other files.
"""

import re
from collections.abc import Sequence
from typing import Final

from footplate.gate.shell.argument_parser import parse_arguments
from footplate.gate.shell.effect_types import FileWrite, ProgramEffects
from footplate.gate.shell.word_expansion import UNKNOWN, Word

_PLAIN_TEXT: Final = re.compile(r"[\w./:@%+,=-]*")
_DANGEROUS_OPTIONS: Final[dict[str, tuple[str, ...]]] = {
    "npm": ("--script-shell", "--shell", "--prefix", "-C", "--userconfig", "--globalconfig", "--node-options",
    "--editor", "--viewer", "--logs-dir", "--node-gyp", "--python",
            "--git", "--registry", "--init-module", "--before-script", "--cache", "--location", "-g", "--global"),
    "pip": ("--index-url", "-i", "--extra-index-url", "-f", "--find-links", "--target", "-t", "--prefix", "--root",
    "--src", "--log",
            "--python", "--proxy", "--report", "--config-settings", "--global-option", "--trusted-host", "--cache-dir"),
    "uv": ("--index-url", "--default-index", "--index", "--extra-index-url", "--find-links", "--config-file",
    "--directory", "--project",
           "-p", "--python", "-i", "-f", "--with-editable", "--env-file", "--cache-dir",
           "--with-requirements", "--script"),
    "cargo": ("--config", "-Z", "--manifest-path", "-C", "--target-dir", "--out-dir", "--artifact-dir",
              "--lockfile-path"),
    "go": ("-exec", "-toolexec", "-vettool", "-modfile", "-overlay", "-C", "-modcacherw", "-pkgdir", "-ldflags",
    "-gcflags", "-asmflags",
           "-gccgoflags", "-compiler", "-fuzz", "-outputdir", "-trace", "-cpuprofile", "-memprofile", "-coverprofile",
           "-blockprofile", "-mutexprofile", "-gocoverdir", "-testlogfile", "-fuzzcachedir"),
    "gh": ("--hostname",), "docker": ("-H", "--host", "--context", "-c", "--config", "--tlscacert"),
    "make": ("--eval", "-E", "-f", "--file", "--makefile", "-C", "--directory", "-I", "--include-dir", "-o", "-W"),
}  # fmt: skip
_SUBCOMMANDS_NEEDING_RULE: Final[dict[str, frozenset[str]]] = {
    "npm": frozenset({"exec", "x", "explore", "config", "set", "c", "link", "ln", "publish", "init", "create", "edit",
    "login", "adduser",
                      "token", "owner", "unpublish", "deprecate", "dist-tag", "access", "hook", "profile", "innit",
                      "completion"}),
    "pip": frozenset({"config", "download", "wheel"}), "uv": frozenset({"tool", "publish", "python", "self", "cache"}),
    "cargo": frozenset({"run", "install", "publish", "login", "owner", "yank", "config", "script", "fix", "r"}),
    "go": frozenset({"run", "generate", "env", "install", "get", "tool", "work", "telemetry"}),
    "gh": frozenset({"alias", "extension", "ext", "config", "auth", "api", "secret", "codespace", "cs", "ssh-key",
    "gpg-key", "gist"}),
    "docker": frozenset({"run", "exec", "create", "cp", "build", "buildx", "commit", "load", "import", "save",
    "export", "plugin",
                         "swarm", "service", "stack", "context", "config", "secret", "container", "image", "volume",
                         "login"}),
}  # fmt: skip
"""Subcommands that a rule must name literally."""
_ABBREVIATING_PROGRAMS: Final = frozenset({"npm", "pip", "make"})
"""Programs that accept abbreviated options."""
_NEVER_ABBREVIATED: Final = frozenset({"--", "--pre"})
_LETTERS_WITH_VALUE: Final = {
    "pip": "rec",
    "make": "jlO",
    "cargo": "pjF",
    "docker": "lDfpn",
    "uv": "rePn",
    "gh": "RLtqsaASlB",
}
"""Letters of short options that are followed by a value, not by more letters."""
_ALIASES: Final = {
    "yarn": "npm", "pnpm": "npm", "bun": "npm", "pip3": "pip", "podman": "docker", "nerdctl": "docker", "gmake": "make",
    "docker-compose": "docker", "pipx": "pip",
}  # fmt: skip
_HOST_ACCESS_OPTIONS: Final = re.compile(
    r"-v|--volume(?:s-from)?|--mount|--privileged|--pid|--net(?:work)?|--ipc|--userns|--cap-add|--device|--security-opt"
)


def analyse_build_tool(name: str, words: Sequence[Word], effects: ProgramEffects) -> bool:
    """Add the effects of a build tool. Returns False if the program is none of these."""
    known = _ALIASES.get(name, name)
    if known not in _DANGEROUS_OPTIONS:
        return False
    _analyse_options(name, known, words, effects)
    at = next((index for index, word in enumerate(words[1:], start=1) if not word.text.startswith("-")), None)
    if at is not None and words[at].text in _SUBCOMMANDS_NEEDING_RULE.get(known, ()):
        effects.add_concern(f"a rule must name {name} {words[at].text} explicitly", literal_words=at + 1)
    if known == "make":
        _analyse_make(words, effects)
    elif known == "docker":
        _analyse_docker(name, words, effects)
    elif known == "go":
        _analyse_go(words, effects)
    effects.mentions.extend(words[1:])
    return True


def _analyse_options(name: str, known: str, words: Sequence[Word], effects: ProgramEffects) -> None:
    for word in words[1:]:
        if word.text == "--" and known in {"npm", "cargo"}:
            break  # the rest is for the program that it runs
        text = word.text.partition("=")[0]
        if text.startswith("-") and _is_dangerous(known, text.replace("_", "-")):
            effects.add_concern(f"{name} {text} changes what it runs or where it writes")
        if not word.known:
            effects.add_concern("an argument is only known at run time")


def _is_dangerous(known: str, option: str) -> bool:
    """Return whether an option is dangerous: by its name, by an abbreviation, or as one of several letters."""
    names = _DANGEROUS_OPTIONS[known]
    if known == "go":  # options have one or two dashes; `-test.` options are for the test binary
        return f"-{option.lstrip('-').removeprefix('test.')}" in names
    if option in names:
        return True
    if known == "npm" and len(option.lstrip("-")) > 1:  # options may have one, two or three dashes
        option = f"--{option.lstrip('-')}"
    if option.startswith("--"):
        return (
            known in _ABBREVIATING_PROGRAMS
            and option not in _NEVER_ABBREVIATED
            and any(each.startswith(option) for each in names)
        )
    letters = option[1:]
    ends = next((at for at, letter in enumerate(letters) if letter in _LETTERS_WITH_VALUE.get(known, "")), len(letters))
    return any(f"-{letter}" in names for letter in letters[: ends + 1])


def _analyse_make(words: Sequence[Word], effects: ProgramEffects) -> None:
    for word in words[1:]:
        name, equals, value = word.text.partition("=")
        if equals and not name.startswith("-"):
            if not _PLAIN_TEXT.fullmatch(value) or name.strip(":?+! \t\n") in {
                "SHELL",
                ".SHELLFLAGS",
                "MAKEFLAGS",
                "MAKE",
                "MAKEFILES",
                "GNUMAKEFLAGS",
            }:
                effects.add_concern(f"the make variable {name} is set")
        elif not _PLAIN_TEXT.fullmatch(word.text):
            effects.add_concern("an argument of make cannot be analysed")


def _analyse_docker(name: str, words: Sequence[Word], effects: ProgramEffects) -> None:
    for index, word in enumerate(words[1:], start=1):
        if _HOST_ACCESS_OPTIONS.match(word.text):
            effects.add_concern(f"{name} {word.text.partition('=')[0]} gives a container access to the host")
        if word.text in {"exec", "run"} and name != "docker-compose":
            rest = [each for each in words[index + 1 :] if not each.text.startswith("-")]
            effects.add_concern(f"{name} {word.text} runs a program", is_visible=True, literal_words=index + 2)
            if len(rest) > 1:
                effects.runs.append((index + 2, tuple(rest[1:])))
    if name == "docker-compose" or (len(words) > 1 and words[1].text == "compose"):
        arguments = parse_arguments(words[1:], takes="fp", takes_long=("--file", "--project-directory", "--env-file"))
        if arguments.has("-f", "--file", "--project-directory", "--env-file"):
            verb = next((each.text for each in words if each.text in {"logs", "ps"}), None)
            if verb is None or arguments.has("--file", "--project-directory", "--env-file"):
                effects.add_concern(f"{name} uses another configuration file")


def _analyse_go(words: Sequence[Word], effects: ProgramEffects) -> None:
    for index, word in enumerate(words[1:], start=1):
        option, equals, value = word.text.partition("=")
        if option in {"-o", "--o"}:
            after = words[index + 1] if index + 1 < len(words) else Word(UNKNOWN)
            effects.writes.append(FileWrite(Word(value) if equals else after, needs_edit_rule=True))
