"""Analyses git commands for permission decisions: finds subcommands and options that run programs, change configuration
or write files.
"""

import re
from collections.abc import Sequence
from typing import Final

from footplate.gate.shell.effect_types import FileWrite, ProgramEffects
from footplate.gate.shell.word_expansion import UNKNOWN, Word

_HARMLESS_GLOBAL_OPTIONS: Final = frozenset(
    {"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs", "--no-replace-objects", "--no-advice"}
)
_READ_SUBCOMMANDS: Final = frozenset({
    "status", "log", "diff", "show", "rev-parse", "ls-files", "ls-tree", "blame", "shortlog", "describe", "rev-list",
    "cat-file",
    "merge-base", "name-rev", "whatchanged", "count-objects", "diff-tree", "for-each-ref", "show-ref", "grep",
    "reflog", "annotate",
    "cherry", "range-diff", "check-ignore", "var", "version",
})  # fmt: skip
_LISTING_ARGUMENTS: Final = {
    "branch": frozenset({"-a", "-r", "-v", "-vv", "--all", "--list", "-l", "--remotes", "--show-current", "--verbose",
    "--no-color"}),
    "remote": frozenset({"show", "get-url"}),
    "tag": frozenset({"-l", "--list", "-n"}),
    "stash": frozenset({"list", "show"}),
    "worktree": frozenset({"list"}),
    "config": frozenset({"--get", "--list", "-l", "--get-all"}),
}  # fmt: skip
"""Subcommands that only list something if all of their arguments are in the set."""
_NAME: Final = re.compile(r"[\w.-]+")
_REFLOG_CHANGES: Final = frozenset({"expire", "delete", "drop", "write"})
"""Subcommands of `git reflog` that change the reflog."""
_SUBCOMMANDS_NEEDING_RULE: Final = frozenset({
    "config", "filter-branch", "difftool", "mergetool", "send-email", "daemon", "instaweb", "web--browse", "gui",
    "citool", "hook",
    "credential", "credential-store", "credential-cache", "bisect", "fast-import", "fast-export", "http-backend",
    "shell", "svn", "p4",
    "imap-send", "request-pull", "maintenance", "fsmonitor--daemon", "init", "clone", "submodule", "worktree", "lfs",
    "apply", "am",
    "archive", "bundle", "format-patch", "help", "update-index", "update-ref", "symbolic-ref", "replace", "notes",
    "subtree", "annex",
})  # fmt: skip
"""Subcommands that a rule must name literally."""
_RISKY_OPTIONS: Final = re.compile(
    r"--(?:ou[a-z]*|ext-d[a-z]*|textc[a-z]*|filters|op[a-z-]*|up[a-z]*-pack|receive-pack|exec|extc[a-z]*|template|config|config-env|no-i|no-in|no-ind(?:ex?)?|"
    r"separate-git-dir|reference|recurse-submodules|con(?:t(?:e[a-z]*)?)?|pathspec-from-file|file|git-dir|work-tree|exec-path|editor|gpg-sign|"
    r"show-signature|strategy|strategy-option|interactive|edit-todo|rebase-merges|trailer|from-file|mailmap|ignore-revs[a-z-]*)(?:=.*)?",
    re.DOTALL,
)
_ABBREVIATED_OPTIONS: Final = (
    "--exec", "--upload-pack", "--receive-pack", "--template", "--config", "--config-env", "--no-index", "--file",
    "--separate-git-dir", "--reference", "--recurse-submodules", "--contents", "--pathspec-from-file", "--git-dir",
    "--work-tree", "--interactive", "--from-file", "--ignore-revs-file", "--ext-diff", "--textconv",
    "--open-files-in-pager",
)  # fmt: skip
"""Options that are also recognised when abbreviated, as git accepts abbreviations."""
_SAFE_OPTIONS: Final = frozenset(
    {"--gpg-sign", "--show-signature", "--trailer", "--strategy", "--strategy-option", "--rebase-merges"}
)
_RISKY_SHORT_OPTIONS: Final = {
    "grep": "Of", "rebase": "xs", "fetch": "", "pull": "", "clone": "ucb", "ls-remote": "", "commit": "Ftc",
    "merge": "Fs",
    "format-patch": "o", "archive": "o", "tag": "F", "blame": "S", "annotate": "S", "config": "f",
    "push": "", "log": "O", "diff": "O", "show": "O",
    "difftool": "xt", "cherry-pick": "", "stash": "",
}  # fmt: skip
"""The short options of a subcommand that run a command, or read or write a file."""
_SUBCOMMANDS_WITH_OWN_PUSH: Final = frozenset({"subtree", "lfs"})
"""Subcommands with their own `push` and `pull`. Rules for `git push` and `git pull` apply to them too."""


def analyse_git(words: Sequence[Word], effects: ProgramEffects) -> None:
    """Add the effects of a git command."""
    at = _find_subcommand(words, effects)
    if at is None:
        effects.harmless = len(words) == 2 and words[1].text in {"--version", "--help"}  # noqa: PLR2004
        if not effects.harmless and len(words) > 1:
            effects.add_concern("the git subcommand cannot be determined")
        return
    name = words[at].text
    rest = words[at + 1 :]
    if not words[at].known:
        effects.add_concern("the git subcommand cannot be determined")
        return
    if name in _SUBCOMMANDS_NEEDING_RULE and not _only_lists(name, rest):
        effects.add_concern(
            f"git {name} may change the configuration, write files or run programs",
            is_visible=name not in {"config", "bisect", "submodule", "filter-branch", "send-email"},
            literal_words=at + 1,
        )
    if name in {"submodule", "bisect"} and len(rest) > 1:
        effects.scripts.append(" ".join(word.text for word in rest[1:]))
    if name in _SUBCOMMANDS_WITH_OWN_PUSH and rest:
        effects.runs.append((at, (words[0], *rest)))
    if any(word.may_split for word in rest):
        effects.add_concern("an argument is only known at run time", is_visible=True)
    _add_hidden_effects(name, rest, effects)
    _analyse_arguments(name, rest, effects)
    effects.harmless = (
        not effects.concerns and not effects.writes and (name in _READ_SUBCOMMANDS or _only_lists(name, rest))
    )
    if at > 1:
        effects.runs.append((at - 1, (words[0], *words[at:])))  # so that rules also match it without the global options


def _only_lists(name: str, rest: Sequence[Word]) -> bool:
    words = _LISTING_ARGUMENTS.get(name)
    if words is None:
        return False
    if name == "remote":
        arguments = [word.text for word in rest if word.text not in {"-v", "--verbose"}]
        return not arguments or (arguments[0] in words and all(_NAME.fullmatch(text) for text in arguments))
    if name in {"config", "stash", "worktree"} and rest and rest[0].text in words:
        return name != "config" or len(rest) <= 2  # noqa: PLR2004
    return all(word.text in words for word in rest) and (name in {"branch", "tag"} or bool(rest))


def _find_subcommand(words: Sequence[Word], effects: ProgramEffects) -> int | None:
    at = 1
    while at < len(words):
        text = words[at].text
        if not text.startswith("-"):
            return at
        if text in _HARMLESS_GLOBAL_OPTIONS:
            at += 1
        elif text == "-C":
            effects.add_concern("git works in another directory", is_visible=True, literal_words=at + 2)
            at += 2
        elif text in {
            "-c",
            "--git-dir",
            "--work-tree",
            "--namespace",
            "--exec-path",
            "--config-env",
            "--super-prefix",
            "--attr-source",
        }:
            effects.add_concern(f"{text} changes the configuration of git")
            if at + 1 < len(words) and "!" in words[at + 1].text:
                effects.scripts.append(words[at + 1].text.partition("!")[2])
            at += 2 if text != "--exec-path" else 1
        else:
            if len(words) > 2 or text not in {"--version", "--help"}:  # noqa: PLR2004
                effects.add_concern(f"{text} changes the configuration of git")
            at += 1
    return None


def _analyse_arguments(name: str, rest: Sequence[Word], effects: ProgramEffects) -> None:
    short = _RISKY_SHORT_OPTIONS.get(name, "")
    takes_message = name in {"commit", "tag", "merge", "stash", "notes"}
    skip = False
    for index, word in enumerate(rest):
        text = word.text
        if skip:
            skip = False
            continue
        if text == "--" and word.known:
            effects.mentions.extend(rest[index + 1 :])
            break
        if word.may_become_option or (word.globs and text[:1] in "*?["):
            effects.add_concern("an argument is only known at run time", is_visible=True)
        elif takes_message and text in {"-m", "--message", "-am", "-sm"}:
            skip = True
        elif _is_risky_option(option := text.partition("=")[0], text):
            _add_option_effects(name, text, option, rest[index + 1 :], effects)
        elif text.startswith("-") and not text.startswith("--"):
            letters = text[1:].split("m")[0] if takes_message else text[1:]
            if any(letter in short for letter in letters):
                effects.add_concern(f"git {name} {text} may read or write files or run programs")
            effects.mentions.append(word)
        elif not text.startswith("-"):
            effects.mentions.append(word)


def _is_risky_option(option: str, text: str) -> bool:
    """Return whether an option reads, writes or runs something."""
    if option in _SAFE_OPTIONS or option == "--text":
        return False
    if _RISKY_OPTIONS.fullmatch(text):
        return True
    return (
        len(option) > len("--") and option[:2] == "--" and any(full.startswith(option) for full in _ABBREVIATED_OPTIONS)
    )


def _add_hidden_effects(name: str, rest: Sequence[Word], effects: ProgramEffects) -> None:
    """Add effects that even a read-only subcommand may have."""
    if name == "reflog" and any(word.text in _REFLOG_CHANGES for word in rest):
        effects.add_concern("git reflog deletes entries", is_visible=True, literal_words=3)
    if name == "diff":
        files = [word for word in rest if not word.text.startswith("-")]
        effects.reads.extend(
            word for word in files if len(files) > 1 or word.globs
        )  # `git diff` compares any two files, also outside of a repository
    if any(_has_unknown_name(name, word) for word in rest):
        effects.add_concern("an option is only known at run time")


def _has_unknown_name(name: str, word: Word) -> bool:
    """Return whether the name of an option is only known at run time."""
    option, equals, _ = word.text.partition("=")
    if option.startswith("--"):
        return UNKNOWN in option or (word.globs and not equals)
    return option.startswith("-") and (UNKNOWN in (option if name == "grep" else option[:2]) or word.globs)


def _add_option_effects(name: str, text: str, option: str, rest: Sequence[Word], effects: ProgramEffects) -> None:
    if text.startswith("--ou"):
        value = text.partition("=")[2] if "=" in text else (rest[0].text if rest else "")
        effects.writes.append(FileWrite(Word(value or UNKNOWN), needs_edit_rule=True))
    else:
        effects.add_concern(f"git {name} {option} may read or write files or run programs")
