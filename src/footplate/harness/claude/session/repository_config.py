"""Selects which Claude Code configuration of a repository the CLI receives, depending on the trust in the project.

The CLI does not read configuration from the working tree, because the agent could have changed it. The instructions of
the base commit become part of the system prompt. With trust `all`, the CLI also receives hooks and MCP servers of the
repository as options. All omitted parts are recorded in the log of the turn.
"""

import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import claude_agent_sdk as sdk

from footplate.domain.agents.agents_and_config import ResolvedConfig
from footplate.domain.json import Json, JsonObject
from footplate.domain.projects import project_instructions
from footplate.domain.projects.project import Trust
from footplate.domain.projects.project_instructions import InstructionKind, ProjectInstructions, SkippedFile

HOOK_EVENTS: Final = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop")
_BEFORE_CALL: Final = "PreToolUse"
_HOOK_OPTIONS: Final = frozenset({"type", "command", "timeout", "statusMessage"})
_GROUP_OPTIONS: Final = frozenset({"matcher", "hooks"})
_MAX_HOOKS: Final = 50
_MAX_COMMAND_LENGTH: Final = 4000
_HOOK_SECONDS: Final = 60
_MAX_HOOK_SECONDS: Final = 600
_MAX_SETTINGS_BYTES: Final = 100_000
"""Maximum bytes. The settings are one argument, and the kernel's limit is 128 KiB."""
_MAX_RECORDED_OMISSIONS: Final = 100
_AMBIGUOUS: Final = frozenset("\n\r\\")
_END: Final = "END-OF-SUMS"
_MAX_SERVERS: Final = 20
_STDIO_OPTIONS: Final = frozenset({"type", "command", "args", "env"})
_REMOTE_OPTIONS: Final = frozenset({"type", "url", "headers"})
_MAX_FRONT_MATTER_LENGTH: Final = 2000
_FILES_CHANGED: Final = (
    "The repository's hooks were not run, because a file below .claude has changed since the base commit."
)

_PREFACE: Final = (
    "The repository contains these instructions for agents. They are from commit {commit}; files in the working tree"
    " may have changed since then. Follow them where they apply to your task."
)
_SKILLS: Final = (
    "The repository contains these skills and commands. If one of them fits your task, or if a message starts with a"
    " slash and a command's name, read its file and follow it."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryConfig:
    """The configuration that the CLI receives from the repository, and the turn's record of it."""

    system: str = ""
    settings: JsonObject = field(default_factory=dict)
    servers: Mapping[str, Any] = field(default_factory=dict)
    record: JsonObject | None = None
    """None if the repository is not trusted, because then nothing is loaded."""


def select_config(instructions: ProjectInstructions) -> RepositoryConfig:
    if instructions.trust is Trust.NOTHING:
        return RepositoryConfig()
    selection = _ConfigSelection(instructions)
    system = selection.system_prompt()
    if instructions.trust is not Trust.ALL:
        return RepositoryConfig(system=system, record=selection.record())
    settings, servers = selection.settings(), selection.servers()
    return RepositoryConfig(system=system, settings=settings, servers=servers, record=selection.record())


def with_instructions(config: ResolvedConfig, repository: RepositoryConfig) -> ResolvedConfig:
    return (
        replace(config, system="\n\n".join(filter(None, (config.system, repository.system))))
        if repository.system
        else config
    )


def with_settings(sdk_options: sdk.ClaudeAgentOptions, repository: RepositoryConfig) -> sdk.ClaudeAgentOptions:
    """Adds the repository's settings and MCP servers. The agent's own servers have precedence over the repository's."""
    if repository.settings:
        sdk_options = replace(sdk_options, settings=json.dumps(repository.settings))
    if repository.servers and isinstance(sdk_options.mcp_servers, dict):
        sdk_options = replace(sdk_options, mcp_servers={**repository.servers, **sdk_options.mcp_servers})
    return sdk_options


class _ConfigSelection:
    """Selects the configuration. Only parts that are known to be harmless are used:

    - Of the settings, only command hooks and deny rules. A repository cannot set the model's address or key, allow
      anything, turn hooks off, or name a helper program.
    - A hook before a call can only stop the call. Its output is not read, because it could replace the permitted call
      by another one.
    - A hook does not run if a file below `.claude` differs from the base commit, because the agent may have written it.
    - Skills and commands are only listed with their front matter. The CLI does not run them, because it would execute
      shell commands inside the text and allow tools that the text names.
    """

    def __init__(self, instructions: ProjectInstructions) -> None:
        self._instructions = instructions
        self._texts = {
            path: project_instructions.decode_text(content) or "" for path, content in instructions.files.items()
        }
        self._loaded: dict[str, JsonObject] = {}
        self._omitted = [*instructions.skipped]

    def system_prompt(self) -> str:
        parts: list[str] = []
        listed: list[str] = []
        for path, text in self._texts.items():
            kind = project_instructions.classify_path(path) or InstructionKind.IMPORT
            if kind in {InstructionKind.SKILL, InstructionKind.COMMAND}:
                listed.append(f"{path}\n{_front_matter(text)}".strip())
            elif kind in {InstructionKind.INSTRUCTIONS, InstructionKind.RULE, InstructionKind.IMPORT}:
                parts.append(f"Contents of {path}:\n\n{text.strip()}")
            elif kind is InstructionKind.AGENT:
                pass  # used if the agent has subagents
            else:
                continue
            self._mark_loaded(path, kind)
        if parts:
            parts.insert(0, _PREFACE.format(commit=self._instructions.commit))
        if listed:
            parts += [_SKILLS, *listed]
        return "\n\n".join(parts)

    def settings(self) -> JsonObject:
        path = ".claude/settings.json"
        read = self._read_json(path)
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
                self._omit(f"{path}: {key}", "a repository cannot set this")
        for key in permissions if isinstance(permissions, dict) else ():
            if key != "deny":
                self._omit(f"{path}: permissions.{key}", "a repository can deny calls but not allow them")
        if len(json.dumps(selected).encode()) > _MAX_SETTINGS_BYTES:
            self._omit(path, f"is longer than {_MAX_SETTINGS_BYTES} bytes, including the checks that Footplate adds")
            return {}
        if selected:
            self._mark_loaded(path, InstructionKind.SETTINGS)
        return selected

    def servers(self) -> dict[str, Any]:
        path = ".mcp.json"
        read = self._read_json(path)
        listed = read.get("mcpServers") if read is not None else None
        selected: dict[str, Any] = {}
        for name, server in listed.items() if isinstance(listed, dict) else ():
            if (reason := _server_refusal(name, server)) is None and len(selected) < _MAX_SERVERS:
                selected[name] = server
            else:
                self._omit(f"{path}: {name}", reason or f"exceeds the limit of {_MAX_SERVERS} MCP servers")
        if selected:
            self._mark_loaded(path, InstructionKind.SERVERS)
        return selected

    def record(self) -> JsonObject:
        return {
            "trust": self._instructions.trust.value,
            "commit": self._instructions.commit,
            "loaded": list(self._loaded.values()),
            "left_out": [
                {"path": omitted.path, "reason": omitted.reason} for omitted in self._omitted[:_MAX_RECORDED_OMISSIONS]
            ],
        }

    def _hooks(self, path: str, listed: Json) -> JsonObject:
        selected: dict[str, Json] = {}
        if listed and (reason := self._unchecked_reason()) is not None:
            self._omit(f"{path}: hooks", reason)
            return selected
        count = 0
        for event, groups in listed.items() if isinstance(listed, dict) else ():
            selected_groups: list[Json] = []
            for group in groups if isinstance(groups, list) else [groups]:
                hooks: list[Json] = []
                for hook in _listed_hooks(group):
                    reason = _hook_refusal(event, hook) or (
                        None if count < _MAX_HOOKS else f"exceeds the limit of {_MAX_HOOKS} hooks"
                    )
                    if reason is not None or not isinstance(hook, dict):
                        self._omit(f"{path}: hooks.{event}", reason or "")
                        continue
                    count += 1
                    hooks.append(self._with_file_check(event, hook))
                if hooks and isinstance(group, dict):
                    matcher: JsonObject = {"matcher": group["matcher"]} if isinstance(group.get("matcher"), str) else {}
                    selected_groups.append({**matcher, "hooks": hooks})
            if selected_groups:
                selected[event] = selected_groups
        return selected

    def _with_file_check(self, event: str, hook: JsonObject) -> JsonObject:
        """The hook's command with a check of the files below `.claude`. If the check fails, a hook before a call stops
        the call, and any other hook is skipped.
        """
        before = event == _BEFORE_CALL
        lines = []
        if checksums := self._checksums():
            refused = f"{{ echo {shlex.quote(_FILES_CHANGED)} >&2; exit {2 if before else 1}; }}"
            checked = '(cd "$CLAUDE_PROJECT_DIR" && sha256sum -c -) >/dev/null 2>&1'
            lines += [f"{checked} <<'{_END}' || {refused}", checksums + _END]
        if before:
            lines.append("exec >/dev/null")
        timeout = hook.get("timeout")
        bounded = min(timeout, _MAX_HOOK_SECONDS) if isinstance(timeout, int | float) and timeout > 0 else _HOOK_SECONDS
        return {"type": "command", "command": "\n".join([*lines, str(hook["command"])]), "timeout": bounded}

    def _checksums(self) -> str:
        scripts = [
            path
            for path in self._instructions.files
            if project_instructions.classify_path(path) is InstructionKind.SCRIPT
        ]
        for path in scripts:
            self._mark_loaded(path, InstructionKind.SCRIPT)
        return "".join(f"{_sha256(self._instructions.files[path])}  {path}\n" for path in scripts)

    def _unchecked_reason(self) -> str | None:
        """Why no hook can run: a file that a hook may execute cannot be compared with the base commit."""
        if any(
            project_instructions.classify_path(skipped.path) is InstructionKind.SCRIPT
            for skipped in self._instructions.skipped
        ):
            return "a file below .claude was omitted and cannot be checked"
        if any(
            set(path) & _AMBIGUOUS
            for path in self._instructions.files
            if project_instructions.classify_path(path) is InstructionKind.SCRIPT
        ):
            return "a file below .claude has a name that cannot be checked"
        return None

    def _read_json(self, path: str) -> JsonObject | None:
        text = self._texts.get(path)
        if text is None:
            return None
        try:
            read = json.loads(text)
        except (ValueError, RecursionError):
            read = None
        if isinstance(read, dict):
            return read
        self._omit(path, "is not a JSON object")
        return None

    def _mark_loaded(self, path: str, kind: InstructionKind) -> None:
        self._loaded[path] = {"path": path, "kind": kind.value, "sha256": _sha256(self._instructions.files[path])}

    def _omit(self, path: str, reason: str) -> None:
        self._omitted.append(SkippedFile(path[: project_instructions.MAX_PATH_CHARACTERS], reason))


def _listed_hooks(group: Json) -> Sequence[Json]:
    """The hooks of a group. A malformed group is reported as one malformed hook."""
    hooks = group.get("hooks") if isinstance(group, dict) and not set(group) - _GROUP_OPTIONS else None
    return hooks if isinstance(hooks, list) else [None]


def _hook_refusal(event: str, hook: Json) -> str | None:
    if event not in HOOK_EVENTS:
        return f"is not one of the supported hook events: {', '.join(HOOK_EVENTS)}"
    if not isinstance(hook, dict) or set(hook) - _HOOK_OPTIONS:
        return "has an unknown format or option"
    if hook.get("type") != "command" or not isinstance(command := hook.get("command"), str):
        return "is not a command hook"
    return (
        "has a command that is too long or contains a NUL byte"
        if len(command) > _MAX_COMMAND_LENGTH or "\0" in command
        else None
    )


def _server_refusal(name: str, server: Json) -> str | None:
    if not isinstance(server, dict) or not name.replace("-", "").replace("_", "").isalnum():
        return "has an unknown format"
    remote = server.get("type") in {"http", "sse"}
    if server.get("type", "stdio") != "stdio" and not remote:
        return "has a type other than stdio, http or sse"
    if unknown := set(server) - (_REMOTE_OPTIONS if remote else _STDIO_OPTIONS):
        return f"has unknown options: {', '.join(sorted(unknown))}"
    if not isinstance(server.get("url" if remote else "command"), str):
        return "has neither a command nor a URL"
    return "uses variables, which are not supported" if "${" in json.dumps(server) else None


def _front_matter(text: str) -> str:
    """The front matter between the two `---` lines, with the name and description."""
    if not text.startswith("---\n"):
        return ""
    head, closed, _ = text.removeprefix("---\n").partition("\n---")
    return head.strip()[:_MAX_FRONT_MATTER_LENGTH] if closed else ""


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
