"""Runs every command with a key, and compares its exit code and message with the published table."""

import json
import os
import secrets
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from typer.main import get_command

from bench.support.command_server import CommandServer
from bench.support.nested_references import SKIPPED_STEP
from bench.support.organisation_isolation import COMMENT, Ids, new_webhook_url
from bench.support.roles.issued_keys import IssuedKey
from bench.support.roles.published_table import PublishedTable
from footplate.cli.app import app
from footplate.cli.render.terminal_io import Exit
from footplate.domain.organisations.webhooks import new_secret

_PROFILE: Final = "work"
_ROLE_MESSAGE: Final = "needs one of the roles"
_KEY_MESSAGE: Final = "The API key is not valid"
_LAST: Final = (
    *("next", "play", "pause", "comments rm", "comments send", "templates rm", "inbox dismiss"),
    *(
        "schedules rm",
        "triggers rm",
        "end",
        "archive",
        "rm",
        "agents archive",
        "environments rm",
        "projects archive",
        "files rm",
    ),
    *("members disable", "members enable", "api-keys revoke", "webhooks rm", "notifications rm"),
)
"""Commands that end an object, or run its steps. They run last, in this order."""
_INCOMPLETE: Final = frozenset(
    {"diff", "apply", "merge", "push", "export", "import", "pull", "steps result", "steps retry", "next", "batch retry"}
    | {"webhooks test", "triggers send", "terminals save"}
)
"""Commands that need more than the session has: a project, Claude Code, a step in the right state, or a server that
listens. They may fail with an error of their own."""


@dataclass(slots=True)
class CommandFindings:
    runs: int = 0
    refused: int = 0
    faults: list[str] = field(default_factory=list)


@dataclass(slots=True)
class CommandRunner:
    server: CommandServer
    table: PublishedTable
    base_url: str
    directory: Path
    """For the home directories of the users."""
    secrets: list[str]
    """Receives the secrets that commands print."""
    findings: CommandFindings = field(default_factory=CommandFindings)

    async def run_all(self, key: IssuedKey, shared: Ids, own: Ids | None) -> None:
        """Runs every command. A command that should be refused names the shared objects, any other one `own`."""
        home = self._create_home(key)
        for command in list_commands():
            required = self.table.command_permissions(command)
            if not required:
                continue
            refusal = key.expected_refusal(required)
            ids = shared if refusal is not None or own is None else own
            template = {"agent": ids["agent_id"], "environment_id": ids["environment_id"]}
            (home / "template.json").write_text(json.dumps(template))
            arguments = build_arguments(home, ids)[command]
            code, output, message = await self._run(home, command, arguments)
            fault = self._find_fault(key, command, code, message, refusal, names_ids=_has_id(arguments, shared))
            if key.is_foreign and any(each in output for each in shared.values()):
                fault = "printed an id of another organisation"
            if fault:
                self.findings.faults.append(f"{key.name}: `{command}` {fault}: {message.strip()[-300:]}")

    def _find_fault(
        self, key: IssuedKey, command: str, code: int, message: str, refusal: int | None, *, names_ids: bool
    ) -> str | None:
        if refusal is not None:
            self.findings.refused += 1
            expected = _KEY_MESSAGE if key.permissions is None else _ROLE_MESSAGE
            return None if (code, expected in message) == (Exit.FAILED, True) else f"was not refused ({code})"
        if _ROLE_MESSAGE in message or _KEY_MESSAGE in message:
            return "was refused"
        if key.is_foreign:
            return "found an object of another organisation" if names_ids and code == Exit.DONE else None
        expected_code = Exit.NEEDS_ACTION if command == "attach" else Exit.DONE  # the session is paused, and has a step
        return None if code == expected_code or (command in _INCOMPLETE and code == Exit.FAILED) else f"failed ({code})"

    async def _run(self, home: Path, command: str, arguments: Sequence[str]) -> tuple[int, str, str]:
        """Runs the command, and returns its exit code, output and messages."""
        self.findings.runs += 1
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), "COLUMNS": "200", "NO_COLOR": "1"}
        environment["FOOTPLATE_TRIGGER_SECRET"] = new_secret()
        process = await self.server.spawn(
            *command.split(), *arguments, "--profile", _PROFILE, cwd=home, env=environment
        )
        out, err = await process.communicate()
        if command in {"api-keys create", "api-keys rotate"} and process.returncode == Exit.DONE:
            self.secrets.append(out.decode().strip())
        code, output = process.returncode or 0, out.decode()
        # Commands that print JSON print errors as JSON, too.
        return code, output, err.decode() if code == Exit.DONE else f"{output}{err.decode()}"

    def _create_home(self, key: IssuedKey) -> Path:
        home = self.directory / secrets.token_hex(4)
        config = home / ".config" / "footplate" / "config.json"
        config.parent.mkdir(parents=True)
        profile = {"base_url": self.base_url, "api_key": key.secret}
        config.write_text(json.dumps({"current": _PROFILE, "profiles": {_PROFILE: profile}}))
        line = {"type": "user", "uuid": "u", "parentUuid": None, "message": {"role": "user", "content": "Hello"}}
        (home / "transcript.jsonl").write_text(json.dumps({**line, "sessionId": "s", "cwd": str(home)}))
        subprocess.run(["git", "init", "--quiet", home], check=True)
        (home / "pipeline.yaml").write_text("steps:\n  - shell: 'true'\n    if: 'false'\n")
        (home / "jobs.jsonl").write_text(json.dumps({"steps": [SKIPPED_STEP]}))
        (home / "rules.json").write_text(json.dumps({"permissions": {"deny": ["Bash(shutdown *)"]}}))
        return home


def list_commands() -> list[str]:
    """Returns every command of the command line, those that end an object last."""
    found = [" ".join(path) for path in _walk(get_command(app), ())]
    return [*(each for each in found if each not in _LAST), *_LAST]


def _walk(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if not hasattr(command, "commands"):
        yield path
        return
    for name, inner in command.commands.items():
        yield from _walk(inner, (*path, name))


def _has_id(arguments: Sequence[str], ids: Ids) -> bool:
    return not set(arguments).isdisjoint(ids.values())


def build_arguments(home: Path, ids: Ids) -> Mapping[str, Sequence[str]]:
    """Returns the arguments of each command. A command that is missing here fails the claim."""
    session, new_name = ids["session_id"], f"n-{secrets.token_hex(6)}"
    return {
        "run": ["--background", "--agent", ids["agent_id"], "--environment", ids["environment_id"], "Hello"],
        "attach": [session],
        "ls": [],
        "show": [session],
        "logs": [session],
        "events": ["--wait", "0.5"],
        "fork": [session],
        "diff": [session],
        "apply": [session, "--directory", str(home)],
        "merge": [session, "--into", "new"],
        "push": [session],
        "export": [session, "--patch", "-"],
        "import": [str(home / "transcript.jsonl")],
        "pull": [session, "--to", str(home)],
        "interrupt": [session],
        "steps ls": [session],
        "terminals ls": [session],
        "terminals save": [session, "--output", str(home / "shell.cast")],
        "steps add": [session, "--shell", "true", "--if", "false"],
        "steps show": [ids["step_id"], "--session", session],
        "steps edit": [ids["step_id"], "--session", session, "--shell", "false"],
        "steps mv": [ids["step_id"], "--session", session, "--last"],
        "steps retry": [ids["step_id"], "--session", session],
        "steps result": [ids["step_id"], "--session", session, "--status", "completed"],
        "steps rm": [ids["step_id"], "--session", session],
        "pause": [session],
        "next": [session],
        "play": [session],
        "queue run": [str(home / "pipeline.yaml"), "--session", session, "--detach"],
        "batch run": [
            *(str(home / "jobs.jsonl"), "--detach", "--agent", ids["agent_id"]),
            *("--environment", ids["environment_id"]),
        ],
        "batch ls": [],
        "batch show": [ids["batch_id"]],
        "batch attach": [ids["batch_id"]],
        "batch results": [ids["batch_id"]],
        "batch retry": [ids["batch_id"], "--outcome", "completed", "--detach"],
        "batch cancel": [ids["batch_id"]],
        "schedules ls": [],
        "schedules create": [
            *("--shell", "true", "--agent", ids["agent_id"], "--environment", ids["environment_id"]),
            *("--cron", "0 0 1 1 *", "--timezone", "UTC", "--name", new_name),
        ],
        "schedules preview": ["0 9 * * *"],
        "schedules show": [ids["deployment_id"]],
        "schedules update": [ids["deployment_id"], "--overlap", "skip"],
        "schedules pause": [ids["deployment_id"]],
        "schedules resume": [ids["deployment_id"]],
        "schedules run": [ids["deployment_id"]],
        "schedules runs": [ids["deployment_id"]],
        "schedules rm": [ids["deployment_id"]],
        "triggers ls": [],
        "triggers create": [
            *("--shell", "true", "--agent", ids["agent_id"], "--environment", ids["environment_id"]),
            *("--name", f"{new_name}-trigger"),
        ],
        "triggers show": [ids["trigger_id"]],
        "triggers update": [ids["trigger_id"], "--max-per-minute", "10"],
        "triggers rotate": [ids["trigger_id"]],
        "triggers send": [ids["trigger_id"]],
        "triggers deliveries": [ids["trigger_id"]],
        "triggers rm": [ids["trigger_id"]],
        "approvals": [],
        "approve": ["--yes", ids["approval_id"]],
        "deny": [ids["other_approval_id"]],
        "inbox ls": [],
        "inbox assign": [ids["item_id"], "--to", ids["member_id"]],
        "inbox snooze": [ids["item_id"], "--until", "1h"],
        "inbox dismiss": [ids["item_id"]],
        "pin": [session],
        "unpin": [session],
        "comments ls": [session],
        "comments add": [str(COMMENT["path"]), "1", "Why?", "--session", session],
        "comments edit": [ids["comment_id"], "Why not?", "--session", session],
        "comments rm": [ids["comment_id"], "--session", session],
        "comments send": [session],
        "templates ls": [],
        "templates show": [ids["template_id"]],
        "templates create": [f"{new_name}-template", "--session", str(home / "template.json")],
        "templates update": [ids["template_id"], "--description", "changed"],
        "templates rm": [ids["template_id"]],
        "questions": [],
        "answer": [ids["question_id"], "--text", "Red"],
        "end": [session],
        "archive": [session],
        "rm": ["--yes", session],
        "agents ls": [],
        "agents show": [ids["agent_id"]],
        "agents create": ["--name", new_name, "--model", "claude-sonnet-5"],
        "agents archive": [ids["agent_id"]],
        "environments ls": [],
        "environments backends": [],
        "environments show": [ids["environment_id"]],
        "environments create": ["--name", new_name],
        "environments rm": [ids["environment_id"]],
        "projects ls": [],
        "projects show": [ids["project_id"]],
        "projects create": [f"https://git.example.com/{new_name}"],
        "projects archive": [ids["project_id"]],
        "projects setup": [ids["project_id"], "--no-cache"],
        "files ls": [],
        "files pull": [ids["session_id"], str(home / "outputs")],
        "files upload": [str(home / "rules.json")],
        "files get": [ids["file_id"]],
        "files rm": [ids["file_id"]],
        "api-keys create": ["--name", new_name, "--role", "viewer"],
        "api-keys ls": [],
        "api-keys rotate": [ids["key_id"]],
        "api-keys revoke": [ids["key_id"]],
        "members ls": [],
        "members add": [new_name, "--role", "viewer"],
        "members roles": [ids["member_id"], "--role", "viewer"],
        "members disable": [ids["member_id"]],
        "members enable": [ids["member_id"]],
        "whoami": [],
        "dashboard": ["--print"],
        "teams ls": [],
        "teams create": [new_name],
        "teams add-member": [ids["team_id"], ids["member_id"]],
        "teams remove-member": [ids["team_id"], ids["member_id"]],
        "models": [],
        "workers": [],
        "queues": [],
        "versions": [],
        "usage": ["--by", "tool"],
        "limits set": ["sessions", "1000000"],
        "limits unset": ["stored_bytes"],
        "webhooks ls": [],
        "webhooks create": [new_webhook_url(), "--session", session],
        "webhooks show": [ids["endpoint_id"]],
        "webhooks update": [ids["endpoint_id"], "--ordered"],
        "webhooks rotate": [ids["endpoint_id"]],
        "webhooks test": [ids["endpoint_id"]],
        "webhooks deliveries": [ids["endpoint_id"]],
        "webhooks replay": [ids["endpoint_id"], ids["delivery_id"]],
        "webhooks rm": [ids["endpoint_id"]],
        "notifications ls": [],
        "notifications set": ["--quiet", "22:00-07:00"],
        "notifications test": [ids["subscription_id"]],
        "notifications rm": [ids["subscription_id"]],
        "share": [session, "--visibility", "organisation"],
        "audit ls": [],
        "audit export": [],
        "audit verify": [],
        "policy show": [],
        "policy set": ["--one-person"],
        "policy replay": ["--rules", str(home / "rules.json")],
    }
