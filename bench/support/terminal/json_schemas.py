"""Validates the `--json` output of every command, for successes and errors, against the schemas in docs/schemas."""

import asyncio
import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from jsonschema import Draft202012Validator

from bench.prove.figure import require
from bench.support.clients import TOOLSET, Client
from bench.support.terminal import cli_commands
from bench.support.terminal.cli_user import CliUser, CommandResult
from footplate.client import AsyncFootplate
from footplate.stack.orphan_processes import wait_until

_FOLDER: Final = Path(__file__).resolve().parents[3] / "docs" / "schemas"
_LOCAL: Final = frozenset({"config list", "doctor", "gc", "policy explain"})
"""Commands without a server request, so that a server cannot refuse them."""


async def validate_json_output(user: CliUser, client: Client, *, quick: bool) -> tuple[int, int]:
    """Returns the number of valid outputs and of tested commands. Every command with `--json` must be tested."""
    checker = _Checker(user, client)
    if quick:
        await checker.check_command("run", "run", "[[script:hello]]")
        await checker.check_command("sessions", "ls")
        return checker.values, len(checker.commands)
    await checker.check_all()
    having = {each.name for each in cli_commands.list_commands() if "--json" in each.options}
    missing, unknown = having - checker.commands, checker.commands - having
    require(holds=not missing and not unknown, otherwise=f"never tested: {missing}; without --json: {unknown}")
    return checker.values, len(checker.commands)


class _Checker:
    def __init__(self, user: CliUser, client: Client) -> None:
        self._person = user
        self._client = client
        self._validators: Mapping[str, Draft202012Validator] = {
            file.stem: Draft202012Validator(json.loads(file.read_text())) for file in _FOLDER.glob("*.json")
        }
        self.commands: set[str] = set()
        self.values = 0

    async def check_all(self) -> None:
        run = await self.check_command("run", "run", "[[script:hello]]")
        session_id = str(run["session_id"])
        await self._check_lines("run-line", "run", "[[script:hello]]", "--output", "stream-json", "--previews")
        await self.check_command("run-background", "run", "--background", "[[script:hello]]")
        await self.check_command("run", "attach", session_id)
        await self._check_lines("run-line", "attach", session_id, "--output", "stream-json")
        await self.check_command("sessions", "ls")
        await self.check_command("session-detail", "show", session_id)
        await self._check_lines("log-line", "logs", session_id, "--json")
        await self.check_command("session", "fork", session_id)
        imported = await self.check_command("import", "import", str(self._transcript()))
        config_dir = str(self._person.home / "claude")
        await self.check_command("pull", "pull", str(imported[0]["session_id"]), CLAUDE_CONFIG_DIR=config_dir)
        await self._check_steps(session_id)
        await self.check_command("session", "share", session_id, "--visibility", "organisation")
        await self._check_lines("event-line", "events", "--after", "0", "--wait", "0.5", "--json")
        await self.check_command("interrupt", "interrupt", session_id)
        await self.check_command("session", "end", session_id)
        await self.check_command("sessions", "archive", session_id)
        await self.check_command("deleted", "rm", "--yes", session_id)
        agent = await self.check_command(
            "agent", "agents create", "--name", "of-a-schema", "--model", "claude-sonnet-4-5"
        )
        await self.check_command("agents", "agents ls")
        await self.check_command("agent", "agents show", str(agent["id"]))
        await self.check_command("agent", "agents archive", str(agent["id"]))
        environment = await self.check_command("environment", "environments create", "--name", "of-a-schema")
        await self.check_command("environments", "environments ls")
        await self.check_command("environment", "environments show", str(environment["id"]))
        await self.check_command("deleted", "environments rm", str(environment["id"]))
        await self._check_decisions()
        await self._check_projects()
        await self._check_files()
        await self._check_batches()
        await self._check_schedules()
        await self._check_members()
        await self.check_command("policy", "policy set", "--none")
        await self.check_command("policy", "policy show")
        await self.check_command("audit", "audit ls")
        await self.check_command("audit-verify", "audit verify")
        await self.check_command("profiles", "config list")
        await self.check_command("doctor", "doctor")
        await self.check_command("gc", "gc", "--dry-run")
        await self.check_command("policy-explain", "policy explain", "ls | env rm x")
        await self.check_command("policy-replay", "policy replay", "--rules", str(self._rules()))

    async def _check_steps(self, session_id: str) -> None:
        pipeline = self._person.home / "pipeline.yaml"
        pipeline.write_text("steps:\n  - shell: ls\n  - external: Wait\n    name: wait\n")
        await self.check_command("playback", "pause", session_id)
        started = ("--detach", "--session", session_id, str(pipeline))
        await self.check_command("pipeline-started", "queue run", *started)
        await self.check_command("step", "steps add", session_id, "--shell", "ls", "--name", "last")
        await self.check_command("step", "steps edit", "last", "--shell", "pwd")
        await self.check_command("step", "steps mv", "last", "--before", "wait")
        await self.check_command("step", "steps show", "last")
        await self.check_command("step", "steps rm", "last")
        await self.check_command("step", "steps retry", "last")
        await self.check_command("playback", "next", session_id)
        await self.check_command("playback", "play", session_id)
        await self.check_command("steps", "steps ls", session_id)
        await self._wait_for_external_step(session_id)
        await self.check_command("step", "steps result", "wait", "--status", "completed")
        await self._check_terminals(session_id)

    async def _check_terminals(self, session_id: str) -> None:
        """Opens a shell, and closes it by an interrupt, so that there is a recording."""
        user = self._person.environment
        async with AsyncFootplate(user["FOOTPLATE_BASE_URL"], user["FOOTPLATE_API_KEY"]) as client:
            step = await client.terminals.open(session_id)

            async def is_open() -> bool:
                return (await client.steps.retrieve(session_id, step.id)).state == "running"

            async def is_recorded() -> bool:
                return bool(await client.terminals.recordings(session_id))

            require(holds=await wait_until(is_open, 60), otherwise="the terminal was not opened")
            await client.events.interrupt(session_id)
            require(holds=await wait_until(is_recorded, 60), otherwise="the terminal was not recorded")
        await self.check_command("terminals", "terminals ls", session_id)
        output = str(self._person.home / "shell.cast")
        await self.check_command("terminals-save", "terminals save", session_id, "--output", output, "--force")

    async def _check_decisions(self) -> None:
        """Checks approvals and questions."""
        asking = {**TOOLSET, "ask_user": True}
        ask_first = {**TOOLSET, "default_config": {"permission_policy": {"type": "always_ask"}}}
        for name, script, toolset in (("asks-first", "hello", ask_first), ("asks", "asks", asking)):
            agent_id = await self._client.agent(name=name, tools=[toolset])
            for _ in range(2):
                await self._person.run("run", "--agent", agent_id, f"[[script:{script}]]")
        first, second = await self.check_command("approvals", "approvals")
        await self.check_command("approvals", "approve", "--yes", str(first["id"]))
        await self.check_command("approvals", "deny", str(second["id"]))
        question, _ = await self.check_command("questions", "questions")
        await self.check_command("question", "answer", str(question["id"]), "--text", "Red")

    async def _check_projects(self) -> None:
        """Checks projects, and every way in which a session's work leaves it."""
        repository = self._person.home / "repository"
        await asyncio.to_thread(_create_repository, repository)
        project = await self.check_command("project", "projects create", str(repository))
        await self.check_command("projects", "projects ls")
        await self.check_command("project", "projects show", str(project["id"]))
        run = await self.check_command("run", "run", "--project", str(project["id"]), "[[script:writes]]")
        session_id, checkout = str(run["session_id"]), ("--directory", str(repository))
        await self.check_command("diff", "diff", session_id)
        await self.check_command("exported", "export", session_id, "--branch", "exported", *checkout)
        await self.check_command("left", "merge", session_id, "--into", "merged")
        await self.check_command("left", "push", session_id, "--branch", "pushed")
        await self.check_command("applied", "apply", session_id, *checkout)
        await self.check_command("files-pull", "files pull", session_id, str(self._person.home / "outputs"))
        await self.check_command("project", "projects archive", str(project["id"]))

    async def _check_batches(self) -> None:
        jobs = self._person.home / "jobs.jsonl"
        jobs.write_text('{"custom_id": "a", "shell": "echo a"}\n')
        result = await self.check_command("batch-run", "batch run", str(jobs))
        batch_id = str(result["batch"]["id"])
        await self.check_command("batch-run", "batch attach", batch_id)
        await self.check_command("batch-detail", "batch show", batch_id)
        await self.check_command("batches", "batch ls")
        await self._check_lines("batch-result-line", "batch results", batch_id, "--json")
        jobs.write_text('{"custom_id": "b", "shell": "exit 1"}\n')
        await self._person.run("batch", "run", str(jobs))
        retried = await self.check_command("batch", "batch retry", "--detach")
        await self.check_command("batch", "batch cancel", str(retried["id"]))

    async def _check_schedules(self) -> None:
        options = ("--shell", "true", "--cron", "0 0 1 1 *", "--timezone", "UTC", "--name", "of-a-schema")
        created = await self.check_command("schedule", "schedules create", *options)
        schedule_id = str(created["id"])
        await self.check_command("schedule", "schedules update", schedule_id, "--overlap", "skip")
        await self.check_command("schedule", "schedules pause", schedule_id)
        await self.check_command("schedule", "schedules resume", schedule_id)
        await self.check_command("schedule-run", "schedules run", schedule_id)
        await self.check_command("schedule-runs", "schedules runs", schedule_id)
        await self.check_command("schedules", "schedules ls")
        await self.check_command("schedule-detail", "schedules show", schedule_id)
        await self.check_command("schedule", "schedules rm", schedule_id)

    async def _check_files(self) -> None:
        file = await self.check_command("file", "files upload", str(self._rules()))
        await self.check_command("files", "files ls")
        await self.check_command("deleted", "files rm", str(file["id"]))

    async def _check_members(self) -> None:
        """Checks members, teams, keys and limits."""
        member = await self.check_command("member", "members add", "of-a-schema", "--role", "viewer")
        member_id = str(member["id"])
        await self.check_command("member", "members roles", member_id, "--role", "member")
        await self.check_command("members", "members ls")
        team = await self.check_command("team", "teams create", "team-of-a-schema")
        await self.check_command("team", "teams add-member", str(team["id"]), member_id)
        await self.check_command("team", "teams remove-member", str(team["id"]), member_id)
        await self.check_command("teams", "teams ls")
        await self.check_command("member", "members disable", member_id)
        await self.check_command("member", "members enable", member_id)
        await self._person.run("api-keys", "create", "--name", "of-a-schema", "--role", "viewer")
        keys = await self.check_command("api-keys", "api-keys ls")
        await self.check_command(
            "api-key", "api-keys revoke", next(k["id"] for k in keys if k["name"] == "of-a-schema")
        )
        await self.check_command("limit", "limits set", "sessions", "1000000")
        await self.check_command("limits", "limits")
        await self.check_command("limit", "limits unset", "sessions")

    async def _wait_for_external_step(self, session_id: str) -> None:
        async def waits() -> bool:
            listed = json.loads((await self._person.run("steps", "ls", session_id, "--json")).out)
            return any(step["waiting_for"] == "action" for step in listed["steps"])

        require(holds=await wait_until(waits, 60), otherwise="the external step does not wait for its result")

    def _rules(self) -> Path:
        path = self._person.home / "rules.json"
        path.write_text(json.dumps({"permissions": {"deny": ["Bash(rm *)"]}}))
        return path

    def _transcript(self) -> Path:
        message = {"role": "user", "content": "Hello"}
        path = self._person.home / "transcript.jsonl"
        path.write_text(json.dumps({"type": "user", "uuid": "u", "parentUuid": None, "message": message}) + "\n")
        return path

    async def check_command(self, schema: str, command: str, *arguments: str, **extra: str) -> Any:
        """Validates a command's output, and its error output with an unknown API key.

        An error is JSON of the same schema, with its exit code.
        """
        argv = [*command.split(), "--json", *arguments]
        done = await self._person.run(*argv, **extra)
        require(holds=done.code == 0, otherwise=f"`{command} --json` exited with {done.code}: {done.out}{done.err}")
        value = self._validate(schema, command, done)
        if command not in _LOCAL and command not in self.commands:
            refused = await self._person.run(*argv, **{**extra, "FOOTPLATE_API_KEY": "nobody"})
            error = self._validate(schema, command, refused)
            require(holds=error["exit_code"] == refused.code == 1, otherwise=f"`{command}`: {refused}")
            require(holds=bool(error["error"]["help"]), otherwise=f"`{command}` has no help for the error: {error}")
        self.commands.add(command)
        return value

    async def _check_lines(self, schema: str, command: str, *arguments: str) -> None:
        done = await self._person.run(*command.split(), *arguments)
        values: Sequence[CommandResult] = [CommandResult(done.code, line, done.err) for line in done.out.splitlines()]
        require(holds=bool(values) and done.code == 0, otherwise=f"`{command}`: {done}")
        for value in values:
            self._validate(schema, command, value)
        self.commands.add(command)

    def _validate(self, schema: str, command: str, done: CommandResult) -> Any:
        require(holds=not done.err, otherwise=f"`{command} --json` writes to stderr: {done.err}")
        value = json.loads(done.out)
        faults = [fault.message for fault in self._validators[schema].iter_errors(value)]
        require(holds=not faults, otherwise=f"`{command} --json` does not match {schema}.json: {faults}\n{done.out}")
        self.values += 1
        return value


def _create_repository(path: Path) -> None:
    path.mkdir()
    (path / "file").write_text("old\n")
    git = ["git", "-c", "user.name=User", "-c", "user.email=user@example.com", "-C", str(path)]
    for arguments in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-qm", "first")):
        subprocess.run([*git, *arguments], check=True, env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"})
