"""Analyses build tools and package managers such as `make`, `npm`, `docker`, `go` and `cargo`.

They run commands that the project configures. Some of their options and subcommands run or write more than that.
"""

import re
from collections.abc import Sequence
from typing import Final

from footplate.gate.shell.deeds import Deeds, Write
from footplate.gate.shell.options import split
from footplate.gate.shell.words import UNKNOWN, Word

_PLAIN: Final = re.compile(r"[\w./:@%+,=-]*")
_DANGEROUS: Final[dict[str, tuple[str, ...]]] = {
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
_SUBCOMMANDS: Final[dict[str, frozenset[str]]] = {
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
_SHORTENING: Final = frozenset({"npm", "pip", "make"})
"""Programs that accept abbreviated options."""
_WHOLE: Final = frozenset({"--", "--pre"})
_VALUED: Final = {"pip": "rec", "make": "jlO", "cargo": "pjF", "docker": "lDfpn", "uv": "rePn", "gh": "RLtqsaASlB"}
"""Letters of short options that are followed by a value, not by more letters."""
_ALIASES: Final = {
    "yarn": "npm", "pnpm": "npm", "bun": "npm", "pip3": "pip", "podman": "docker", "nerdctl": "docker", "gmake": "make",
    "docker-compose": "docker", "pipx": "pip",
}  # fmt: skip
_INTO_CONTAINERS: Final = re.compile(
    r"-v|--volume(?:s-from)?|--mount|--privileged|--pid|--net(?:work)?|--ipc|--userns|--cap-add|--device|--security-opt"
)


def build(name: str, words: Sequence[Word], deeds: Deeds) -> bool:
    """Add the effects of a build tool. Returns False if the program is none of these."""
    known = _ALIASES.get(name, name)
    if known not in _DANGEROUS:
        return False
    _options(name, known, words, deeds)
    at = next((index for index, word in enumerate(words[1:], start=1) if not word.text.startswith("-")), None)
    if at is not None and words[at].text in _SUBCOMMANDS.get(known, ()):
        deeds.worry(f"{name} {words[at].text} needs a rule of its own", literal_words=at + 1)
    if known == "make":
        _make(words, deeds)
    elif known == "docker":
        _docker(name, words, deeds)
    elif known == "go":
        _go(words, deeds)
    deeds.mentions.extend(words[1:])
    return True


def _options(name: str, known: str, words: Sequence[Word], deeds: Deeds) -> None:
    for word in words[1:]:
        if word.text == "--" and known in {"npm", "cargo"}:
            break  # the rest is for the program that it runs
        text = word.text.partition("=")[0]
        if text.startswith("-") and _dangerous(known, text.replace("_", "-")):
            deeds.worry(f"{name} {text} changes what it runs or where it writes")
        if not word.known:
            deeds.worry("an argument is only known at run time")


def _dangerous(known: str, option: str) -> bool:
    """Return whether an option is dangerous: by its name, by an abbreviation, or as one of several letters."""
    names = _DANGEROUS[known]
    if known == "go":  # options have one or two dashes; `-test.` options are for the test binary
        return f"-{option.lstrip('-').removeprefix('test.')}" in names
    if option in names:
        return True
    if known == "npm" and len(option.lstrip("-")) > 1:  # options may have one, two or three dashes
        option = f"--{option.lstrip('-')}"
    if option.startswith("--"):
        return known in _SHORTENING and option not in _WHOLE and any(each.startswith(option) for each in names)
    letters = option[1:]
    ends = next((at for at, letter in enumerate(letters) if letter in _VALUED.get(known, "")), len(letters))
    return any(f"-{letter}" in names for letter in letters[: ends + 1])


def _make(words: Sequence[Word], deeds: Deeds) -> None:
    for word in words[1:]:
        name, equals, value = word.text.partition("=")
        if equals and not name.startswith("-"):
            if not _PLAIN.fullmatch(value) or name.strip(":?+! \t\n") in {
                "SHELL",
                ".SHELLFLAGS",
                "MAKEFLAGS",
                "MAKE",
                "MAKEFILES",
                "GNUMAKEFLAGS",
            }:
                deeds.worry(f"the make variable {name} is set")
        elif not _PLAIN.fullmatch(word.text):
            deeds.worry("an argument of make cannot be analysed")


def _docker(name: str, words: Sequence[Word], deeds: Deeds) -> None:
    for index, word in enumerate(words[1:], start=1):
        if _INTO_CONTAINERS.match(word.text):
            deeds.worry(f"{name} {word.text.partition('=')[0]} gives a container access to the host")
        if word.text in {"exec", "run"} and name != "docker-compose":
            rest = [each for each in words[index + 1 :] if not each.text.startswith("-")]
            deeds.worry(f"{name} {word.text} runs a program", is_visible=True, literal_words=index + 2)
            if len(rest) > 1:
                deeds.runs.append((index + 2, tuple(rest[1:])))
    if name == "docker-compose" or (len(words) > 1 and words[1].text == "compose"):
        given = split(words[1:], takes="fp", takes_long=("--file", "--project-directory", "--env-file"))
        if given.has("-f", "--file", "--project-directory", "--env-file"):
            verb = next((each.text for each in words if each.text in {"logs", "ps"}), None)
            if verb is None or given.has("--file", "--project-directory", "--env-file"):
                deeds.worry(f"{name} is given another configuration file")


def _go(words: Sequence[Word], deeds: Deeds) -> None:
    for index, word in enumerate(words[1:], start=1):
        option, equals, value = word.text.partition("=")
        if option in {"-o", "--o"}:
            after = words[index + 1] if index + 1 < len(words) else Word(UNKNOWN)
            deeds.writes.append(Write(Word(value) if equals else after, asked_for=True))
