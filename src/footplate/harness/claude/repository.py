"""Selects the parts of a repository's Claude Code configuration that the CLI receives, by the project's trust.

The CLI does not read configuration from the working tree, because the agent could have written it. It receives the base
commit's instructions as part of its system prompt. With the trust `all`, it also receives the repository's hooks and
MCP servers as options, which no file can change afterwards. Only what is known to be harmless is passed on. Everything
else is omitted, and the turn's record says so:

- Of the settings, only command hooks and deny rules are used. A repository cannot set the model's address or key, allow
  anything, turn hooks off, or name a helper program.
- A hook before a call can only stop the call. Its output is not read, because it could replace the permitted call by
  another one.
- A hook does not run if a file below `.claude` differs from the base commit, because the agent may have written it.
- Skills and commands are listed with their front matter, for the agent to read. They are never run as the CLI would run
  them, because that would execute shell commands inside the text and allow tools that the text names.
"""

import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import claude_agent_sdk as sdk

from footplate.domain import brought
from footplate.domain.agents import ResolvedConfig
from footplate.domain.brought import Brought, Kind, LeftOut
from footplate.domain.json import Json, JsonObject
from footplate.domain.projects import Trust

HOOKS: Final = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop")
_BEFORE: Final = "PreToolUse"
_HOOK: Final = frozenset({"type", "command", "timeout", "statusMessage"})
_GROUP: Final = frozenset({"matcher", "hooks"})
_MOST_HOOKS: Final = 50
_LONGEST_COMMAND: Final = 4000
_HOOK_SECONDS: Final = 60
_LONGEST_HOOK: Final = 600
_LONGEST_SETTINGS: Final = 100_000
"""Maximum bytes. The settings are one argument, and the kernel's limit is 128 KiB."""
_MOST_TOLD: Final = 100
_AMBIGUOUS: Final = frozenset("\n\r\\")
_END: Final = "END-OF-SUMS"
_MOST_SERVERS: Final = 20
_STDIO: Final = frozenset({"type", "command", "args", "env"})
_REMOTE: Final = frozenset({"type", "url", "headers"})
_LONGEST_HEAD: Final = 2000
_CHANGED: Final = "The repository's hooks were not run, because a file below .claude has changed since the base commit."

_PREFACE: Final = (
    "The repository contains these instructions for agents. They are from commit {commit}; files in the working tree"
    " may have changed since then. Follow them where they apply to your task."
)
_SKILLS: Final = (
    "The repository contains these skills and commands. If one of them fits your task, or if a message starts with a"
    " slash and a command's name, read its file and follow it."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The configuration that the CLI receives from the repository, and the turn's record of it."""

    system: str = ""
    settings: JsonObject = field(default_factory=dict)
    servers: Mapping[str, Any] = field(default_factory=dict)
    record: JsonObject | None = None
    """None if the repository is not trusted, because then nothing is loaded."""


def given(found: Brought) -> Given:
    if found.trust is Trust.NOTHING:
        return Given()
    chosen = _Chosen(found)
    words = chosen.words()
    if found.trust is not Trust.ALL:
        return Given(system=words, record=chosen.record())
    settings, servers = chosen.settings(), chosen.servers()
    return Given(system=words, settings=settings, servers=servers, record=chosen.record())


def with_words(config: ResolvedConfig, what: Given) -> ResolvedConfig:
    return replace(config, system="\n\n".join(filter(None, (config.system, what.system)))) if what.system else config


def with_works(made: sdk.ClaudeAgentOptions, what: Given) -> sdk.ClaudeAgentOptions:
    """Adds the repository's settings and MCP servers. The agent's own servers have precedence over the repository's."""
    if what.settings:
        made = replace(made, settings=json.dumps(what.settings))
    if what.servers and isinstance(made.mcp_servers, dict):
        made = replace(made, mcp_servers={**what.servers, **made.mcp_servers})
    return made


class _Chosen:
    def __init__(self, instructions: Brought) -> None:
        self._found = instructions
        self._texts = {path: brought.text_of(content) or "" for path, content in instructions.files.items()}
        self._loaded: dict[str, JsonObject] = {}
        self._left_out = [*instructions.left_out]

    def words(self) -> str:
        parts, listed = [], []
        for path, text in self._texts.items():
            kind = brought.kind(path) or Kind.IMPORT
            if kind in {Kind.SKILL, Kind.COMMAND}:
                listed.append(f"{path}\n{_head(text)}".strip())
            elif kind in {Kind.INSTRUCTIONS, Kind.RULE, Kind.IMPORT}:
                parts.append(f"Contents of {path}:\n\n{text.strip()}")
            else:
                continue
            self._load(path, kind)
        if parts:
            parts.insert(0, _PREFACE.format(commit=self._found.commit))
        if listed:
            parts += [_SKILLS, *listed]
        return "\n\n".join(parts)

    def settings(self) -> JsonObject:
        path = ".claude/settings.json"
        read = self._json(path)
        if read is None:
            return {}
        selected: JsonObject = {}
        if hooks := self._hooks(path, read.get("hooks")):
            selected["hooks"] = hooks
        permissions = read.get("permissions")
        denied = permissions.get("deny") if isinstance(permissions, dict) else None
        if isinstance(denied, list) and denied and all(isinstance(rule, str) for rule in denied):
            selected["permissions"] = {"deny": denied}
        for key in read:
            if key not in {"hooks", "permissions", "$schema"}:
                self._leave(f"{path}: {key}", "a repository cannot set this")
        for key in permissions if isinstance(permissions, dict) else ():
            if key != "deny":
                self._leave(f"{path}: permissions.{key}", "a repository can deny but not allow")
        if len(json.dumps(selected).encode()) > _LONGEST_SETTINGS:
            self._leave(path, f"is longer than {_LONGEST_SETTINGS} bytes, including the checks that are added")
            return {}
        if selected:
            self._load(path, Kind.SETTINGS)
        return selected

    def servers(self) -> dict[str, Any]:
        path = ".mcp.json"
        read = self._json(path)
        listed = read.get("mcpServers") if read is not None else None
        selected: dict[str, Any] = {}
        for name, server in listed.items() if isinstance(listed, dict) else ():
            if (reason := _server_refusal(name, server)) is None and len(selected) < _MOST_SERVERS:
                selected[name] = server
            else:
                self._leave(f"{path}: {name}", reason or f"is one of more than {_MOST_SERVERS}")
        if selected:
            self._load(path, Kind.SERVERS)
        return selected

    def record(self) -> JsonObject:
        return {
            "trust": self._found.trust.value,
            "commit": self._found.commit,
            "loaded": list(self._loaded.values()),
            "left_out": [{"path": omitted.path, "reason": omitted.reason} for omitted in self._left_out[:_MOST_TOLD]],
        }

    def _hooks(self, path: str, listed: Json) -> JsonObject:
        selected: dict[str, Json] = {}
        if listed and (reason := self._unchecked()) is not None:
            self._leave(f"{path}: hooks", reason)
            return selected
        count = 0
        for event, groups in listed.items() if isinstance(listed, dict) else ():
            selected_groups: list[Json] = []
            for group in groups if isinstance(groups, list) else [groups]:
                hooks: list[Json] = []
                for hook in _listed_hooks(group):
                    reason = _hook_refusal(event, hook) or (None if count < _MOST_HOOKS else "is one of too many")
                    if reason is not None or not isinstance(hook, dict):
                        self._leave(f"{path}: hooks.{event}", reason or "")
                        continue
                    count += 1
                    hooks.append(self._guarded(event, hook))
                if hooks and isinstance(group, dict):
                    matcher: JsonObject = {"matcher": group["matcher"]} if isinstance(group.get("matcher"), str) else {}
                    selected_groups.append({**matcher, "hooks": hooks})
            if selected_groups:
                selected[event] = selected_groups
        return selected

    def _guarded(self, event: str, hook: JsonObject) -> JsonObject:
        """The hook's command with a check of the files below `.claude`. If the check fails, a hook before a call stops
        the call, and any other hook is skipped.
        """
        before = event == _BEFORE
        lines = []
        if checksums := self._sums():
            refused = f"{{ echo {shlex.quote(_CHANGED)} >&2; exit {2 if before else 1}; }}"
            checked = '(cd "$CLAUDE_PROJECT_DIR" && sha256sum -c -) >/dev/null 2>&1'
            lines += [f"{checked} <<'{_END}' || {refused}", checksums + _END]
        if before:
            lines.append("exec >/dev/null")
        timeout = hook.get("timeout")
        bounded = min(timeout, _LONGEST_HOOK) if isinstance(timeout, int | float) and timeout > 0 else _HOOK_SECONDS
        return {"type": "command", "command": "\n".join([*lines, str(hook["command"])]), "timeout": bounded}

    def _sums(self) -> str:
        scripts = [path for path in self._found.files if brought.kind(path) is Kind.SCRIPT]
        for path in scripts:
            self._load(path, Kind.SCRIPT)
        return "".join(f"{_sha256(self._found.files[path])}  {path}\n" for path in scripts)

    def _unchecked(self) -> str | None:
        """Why no hook can run: a file that a hook may execute cannot be compared with the base commit."""
        if any(brought.kind(skipped.path) is Kind.SCRIPT for skipped in self._found.left_out):
            return "a file below .claude was omitted and cannot be checked"
        if any(set(path) & _AMBIGUOUS for path in self._found.files if brought.kind(path) is Kind.SCRIPT):
            return "a file below .claude has a name that cannot be checked"
        return None

    def _json(self, path: str) -> JsonObject | None:
        text = self._texts.get(path)
        if text is None:
            return None
        try:
            read = json.loads(text)
        except (ValueError, RecursionError):
            read = None
        if isinstance(read, dict):
            return read
        self._leave(path, "is not a JSON object")
        return None

    def _load(self, path: str, kind: Kind) -> None:
        self._loaded[path] = {"path": path, "kind": kind.value, "sha256": _sha256(self._found.files[path])}

    def _leave(self, path: str, reason: str) -> None:
        self._left_out.append(LeftOut(path[: brought.LONGEST_PATH], reason))


def _listed_hooks(group: Json) -> Sequence[Json]:
    """The hooks of a group. A malformed group is reported as one malformed hook."""
    hooks = group.get("hooks") if isinstance(group, dict) and not set(group) - _GROUP else None
    return hooks if isinstance(hooks, list) else [None]


def _hook_refusal(event: str, hook: Json) -> str | None:
    if event not in HOOKS:
        return f"is not one of the supported hook events: {', '.join(HOOKS)}"
    if not isinstance(hook, dict) or set(hook) - _HOOK:
        return "has an unknown format or option"
    if hook.get("type") != "command" or not isinstance(command := hook.get("command"), str):
        return "is not a command hook"
    return "is too long" if len(command) > _LONGEST_COMMAND or "\0" in command else None


def _server_refusal(name: str, server: Json) -> str | None:
    if not isinstance(server, dict) or not name.replace("-", "").replace("_", "").isalnum():
        return "has an unknown format"
    remote = server.get("type") in {"http", "sse"}
    if server.get("type", "stdio") != "stdio" and not remote:
        return "has a type other than stdio, http and sse"
    if unknown := set(server) - (_REMOTE if remote else _STDIO):
        return f"has unknown options: {', '.join(sorted(unknown))}"
    if not isinstance(server.get("url" if remote else "command"), str):
        return "has neither a command nor a URL"
    return "uses variables, which are not supported" if "${" in json.dumps(server) else None


def _head(text: str) -> str:
    """The front matter between the two `---` lines, with the name and description."""
    if not text.startswith("---\n"):
        return ""
    head, closed, _ = text.removeprefix("---\n").partition("\n---")
    return head.strip()[:_LONGEST_HEAD] if closed else ""


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
