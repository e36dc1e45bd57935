"""Completes the ids of sessions, agents and other resources in the shell. Typer completes commands and options.

The module imports no third-party library, because the user waits for it. Only harmless characters are printed, because
a shell may evaluate text that comes from the server.
"""

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Final
from urllib.parse import urlsplit

from footplate.cli.profile import saved_ids, server_profiles

_TIMEOUT: Final = 1.0
_MAX_ITEMS: Final = 50
_UNSAFE_CHARACTERS: Final = re.compile(r"[^\w .,!?/+=@%-]+")
_NAME: Final = re.compile(r"[\w.-]+")

Item = tuple[str, str]
Source = Callable[[str | None], Sequence[Item]]


def print_completions(shell: str, environment: Mapping[str, str]) -> bool:
    """Prints the completions if the cursor is at an id, and returns whether it was."""
    arguments = _parse_arguments(shell, environment)
    source = _find_source(arguments)
    if source is None or shell not in _FORMATS:
        return False
    found = [item for item in source(_find_profile(arguments)) if item[0].startswith(arguments[-1])]
    text = _FORMATS[shell]([(name, " ".join(_UNSAFE_CHARACTERS.sub(" ", about).split())) for name, about in found])
    if environment.get("_TYPER_COMPLETE_FISH_ACTION") == "is-args":
        sys.exit(0 if found else 1)
    sys.stdout.write(f"{text}\n")
    return True


def _parse_arguments(shell: str, environment: Mapping[str, str]) -> list[str]:
    """Returns the words after the program name up to the cursor. The last one is unfinished and may be empty."""
    if shell == "bash":
        arguments = environment.get("COMP_WORDS", "").split()
        position = int(environment.get("COMP_CWORD") or 0)
        return [*arguments[1:position], arguments[position] if position < len(arguments) else ""]
    line = environment.get("_TYPER_COMPLETE_ARGS", "")
    arguments = line.split()[1:]
    if shell in {"powershell", "pwsh"}:
        unfinished = environment.get("_TYPER_COMPLETE_WORD_TO_COMPLETE", "")
        return [*(arguments[:-1] if unfinished else arguments), unfinished]
    return arguments if arguments and not line.endswith(" ") else [*arguments, ""]


def _find_source(arguments: Sequence[str]) -> Source | None:
    before, unfinished = [argument for argument in arguments[:-1] if argument not in _FLAGS], arguments[-1]
    if not before or unfinished.startswith("-"):
        return None
    if before[-1].startswith("-"):
        return _OPTIONS.get((before[0], before[-1])) or _OPTIONS.get(("", before[-1]))
    further = _FURTHER_ARGUMENTS.get(" ".join(before[:2])) if len(before) > 2 else None  # noqa: PLR2004 - group, command
    return _ARGUMENTS.get(before[0]) or _ARGUMENTS.get(" ".join(before)) or further


def _find_profile(arguments: Sequence[str]) -> str | None:
    position = arguments.index("--profile") + 1 if "--profile" in arguments else 0
    return arguments[position] or None if 0 < position < len(arguments) - 1 else None


def _sessions(profile: str | None) -> Sequence[Item]:
    found = _fetch_items("/v1/sessions", profile)
    # A server that is older than this command line sends no activity.
    states = [(item.get("activity") or {}).get("state", item["status"]) for item in found]
    return [(item["id"], f"{state} {item['title'] or ''}") for item, state in zip(found, states, strict=True)]


def _steps(profile: str | None) -> Sequence[Item]:
    """Returns the steps of the last used session."""
    try:
        session_id = saved_ids.recall_id(server_profiles.select_server(profile).base_url, "session")
    except server_profiles.NoServerSelected:
        return []
    found = _fetch_items(f"/v1/sessions/{session_id}/steps", profile) if session_id else []
    return [(item["name"] or item["id"], f"{item['state']} {item['kind']}") for item in found]


def _agents(profile: str | None) -> Sequence[Item]:
    return [(item["id"], str(item["name"])) for item in _fetch_items("/v1/agents", profile)]


def _environments(profile: str | None) -> Sequence[Item]:
    return [(item["id"], str(item["name"])) for item in _fetch_items("/v1/environments", profile)]


def _files(profile: str | None) -> Sequence[Item]:
    return [(item["id"], str(item["filename"])) for item in _fetch_items("/v1/files", profile)]


def _projects(profile: str | None) -> Sequence[Item]:
    return [(item["id"], str(item["name"])) for item in _fetch_items("/v1/projects", profile)]


def _members(profile: str | None) -> Sequence[Item]:
    return [(item["id"], str(item["name"])) for item in _fetch_items("/v1/members", profile)]


def _teams(profile: str | None) -> Sequence[Item]:
    return [(item["id"], str(item["name"])) for item in _fetch_items("/v1/teams", profile)]


def _api_keys(profile: str | None) -> Sequence[Item]:
    return [(item["id"], f"{item['member_name']} {item['name']}") for item in _fetch_items("/v1/api_keys", profile)]


def _webhooks(profile: str | None) -> Sequence[Item]:
    return [(item["id"], str(item["url"])) for item in _fetch_items("/v1/webhook_endpoints", profile)]


def _browsers(profile: str | None) -> Sequence[Item]:
    return [(item["id"], str(item["user_agent"])) for item in _fetch_items("/v1/push_subscriptions", profile)]


def _triggers(profile: str | None) -> Sequence[Item]:
    return [(item["id"], str(item["name"])) for item in _fetch_items("/v1/triggers", profile)]


def _inbox(profile: str | None) -> Sequence[Item]:
    return [(item["id"], f"{item['kind']} {item['title']}") for item in _fetch_items("/v1/inbox", profile)]


def _templates(profile: str | None) -> Sequence[Item]:
    return [(item["id"], str(item["name"])) for item in _fetch_items("/v1/session_templates", profile)]


def _profiles(_profile: str | None) -> Sequence[Item]:
    try:
        known = server_profiles.load_config().profiles
    except server_profiles.NoServerSelected:
        known = dict[str, Mapping[str, str]]()
    named = [(name, fields.get("base_url", "")) for name, fields in known.items() if _NAME.fullmatch(name)]
    return [*named, (server_profiles.LOCAL_PROFILE, "footplate dev on this machine")]


def _keys(_profile: str | None) -> Sequence[Item]:
    return [(key, "") for key in server_profiles.PROFILE_KEYS]


def _harnesses(_profile: str | None) -> Sequence[Item]:
    return [("claude", "Claude Code"), ("native", "any provider")]


def _fetch_items(path: str, profile: str | None) -> list[dict[str, Any]]:
    """Fetches a list from the server. Returns nothing on failure: an error message would disturb the command line."""
    try:
        server = server_profiles.select_server(profile)
        parts = urlsplit(server.base_url)
        make = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        connection = make(parts.hostname or "", parts.port, timeout=_TIMEOUT)
        connection.request("GET", f"{path}?limit={_MAX_ITEMS}", headers={"x-api-key": server.api_key})
        data = json.loads(connection.getresponse().read())["data"]
        return [item for item in data if _NAME.fullmatch(item["id"])]
    except (server_profiles.NoServerSelected, OSError, HTTPException, ValueError, LookupError, TypeError):
        return []


def _bash(items: Sequence[Item]) -> str:
    return "\n".join(name for name, _ in items)


def _zsh(items: Sequence[Item]) -> str:
    described = "\n".join(f'"{name}":"{about}"' for name, about in items)
    return f"_arguments '*: :(({described}))'" if items else "_files"


def _fish(items: Sequence[Item]) -> str:
    return "\n".join(f"{name}\t{about}" for name, about in items)


def _powershell(items: Sequence[Item]) -> str:
    return "\n".join(f"{name}:::{about or ' '}" for name, about in items)


_FORMATS: Final = {"bash": _bash, "zsh": _zsh, "fish": _fish, "powershell": _powershell, "pwsh": _powershell}
_FLAGS: Final = frozenset({"--json", "--follow", "-f", "--yes", "-y", "--stat"})
"""Options without a value, which an id may follow."""
_ARGUMENTS: Final[Mapping[str, Source]] = {
    **dict.fromkeys(
        (
            "attach",
            "show",
            "logs",
            "fork",
            "share",
            "diff",
            "apply",
            "merge",
            "push",
            "export",
            "pull",
            "interrupt",
            "end",
            "archive",
            "rm",
            "play",
            "pause",
            "next",
            "steps ls",
            "steps add",
            "terminals ls",
            "terminals save",
            "pin",
            "unpin",
            "comments ls",
            "comments send",
        ),
        _sessions,
    ),
    **dict.fromkeys(("steps show", "steps edit", "steps mv", "steps rm", "steps result"), _steps),
    **dict.fromkeys(("agents show", "agents archive"), _agents),
    **dict.fromkeys(("environments show", "environments rm"), _environments),
    **dict.fromkeys(("projects show", "projects archive", "projects setup"), _projects),
    **dict.fromkeys(("files get", "files rm"), _files),
    **dict.fromkeys(("members roles", "members disable", "members enable"), _members),
    **dict.fromkeys(("teams add-member", "teams remove-member"), _teams),
    **dict.fromkeys(("api-keys rotate", "api-keys revoke"), _api_keys),
    **dict.fromkeys(
        tuple(f"webhooks {each}" for each in ("show", "update", "rm", "rotate", "test", "deliveries", "replay")),
        _webhooks,
    ),
    **dict.fromkeys(
        tuple(f"triggers {each}" for each in ("show", "update", "rm", "rotate", "send", "deliveries")), _triggers
    ),
    **dict.fromkeys(("notifications rm", "notifications test"), _browsers),
    **dict.fromkeys(("inbox assign", "inbox snooze", "inbox dismiss"), _inbox),
    **dict.fromkeys(("templates show", "templates update", "templates rm"), _templates),
    **dict.fromkeys(("config use", "config rm"), _profiles),
    **dict.fromkeys(("config set", "config get"), _keys),
}
_FURTHER_ARGUMENTS: Final[Mapping[str, Source]] = dict.fromkeys(("teams add-member", "teams remove-member"), _members)
_OPTIONS: Final[Mapping[tuple[str, str], Source]] = {
    ("run", "--session"): _sessions,
    ("run", "-s"): _sessions,
    ("run", "--resume"): _sessions,
    ("run", "-r"): _sessions,
    **{(command, option): _sessions for command in ("steps", "queue", "comments") for option in ("--session", "-s")},
    ("steps", "--before"): _steps,
    ("run", "--harness"): _harnesses,
    ("run", "--agent"): _agents,
    ("run", "-a"): _agents,
    ("run", "--environment"): _environments,
    **{
        (command, option): _projects
        for command in ("diff", "apply", "merge", "push", "export")
        for option in ("--project", "-p")
    },
    ("api-keys", "--project"): _projects,
    **{(command, option): _projects for command in ("inbox", "comments") for option in ("--project", "-p")},
    ("inbox", "--to"): _members,
    **{("", option): _members for option in ("--member", "--owner", "--hand-over-to")},
    ("", "--team"): _teams,
    ("", "--profile"): _profiles,
}
