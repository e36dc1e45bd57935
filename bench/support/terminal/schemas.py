"""Validates the `--json` output of every command, for successes and errors, against the schemas in docs/schemas."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from jsonschema import Draft202012Validator

from bench.prove.figure import require
from bench.support.terminal import commands
from bench.support.terminal.person import Done, Person

_FOLDER: Final = Path(__file__).resolve().parents[3] / "docs" / "schemas"
_LOCAL: Final = frozenset({"config list", "doctor", "gc", "policy explain"})
"""Commands without a server request, so that a server cannot refuse them."""


async def validated(person: Person, *, quick: bool) -> tuple[int, int]:
    """Returns the number of valid outputs and of tested commands. Every command with `--json` must be tested."""
    checker = _Checker(person)
    if quick:
        await checker.good("run", "run", "[[script:hello]]")
        await checker.good("sessions", "ls")
        return checker.values, len(checker.commands)
    await checker.all()
    having = {each.name for each in commands.every() if "--json" in each.options}
    missing, unknown = having - checker.commands, checker.commands - having
    require(holds=not missing and not unknown, otherwise=f"never tested: {missing}; without --json: {unknown}")
    return checker.values, len(checker.commands)


class _Checker:
    def __init__(self, person: Person) -> None:
        self._person = person
        self._validators: Mapping[str, Draft202012Validator] = {
            file.stem: Draft202012Validator(json.loads(file.read_text())) for file in _FOLDER.glob("*.json")
        }
        self.commands: set[str] = set()
        self.values = 0

    async def all(self) -> None:
        run = await self.good("run", "run", "[[script:hello]]")
        session_id = str(run["session_id"])
        await self._lines("run-line", "run", "[[script:hello]]", "--output", "stream-json", "--previews")
        await self.good("run-background", "run", "--background", "[[script:hello]]")
        await self.good("run", "attach", session_id)
        await self._lines("run-line", "attach", session_id, "--output", "stream-json")
        await self.good("sessions", "ls")
        await self.good("session-detail", "show", session_id)
        await self._lines("log-line", "logs", session_id, "--json")
        await self.good("session", "fork", session_id)
        imported = await self.good("import", "import", str(self._transcript()))
        place = str(self._person.home / "claude")
        await self.good("pull", "pull", str(imported[0]["session_id"]), CLAUDE_CONFIG_DIR=place)
        await self.good("interrupt", "interrupt", session_id)
        await self.good("sessions", "archive", session_id)
        await self.good("deleted", "rm", "--yes", session_id)
        agent = await self.good("agent", "agents create", "--name", "of-a-schema", "--model", "claude-sonnet-4-5")
        await self.good("agents", "agents ls")
        await self.good("agent", "agents show", str(agent["id"]))
        await self.good("agent", "agents archive", str(agent["id"]))
        room = await self.good("environment", "environments create", "--name", "of-a-schema")
        await self.good("environments", "environments ls")
        await self.good("environment", "environments show", str(room["id"]))
        await self.good("deleted", "environments rm", str(room["id"]))
        await self.good("approvals", "approvals")
        await self.good("audit", "audit ls")
        await self.good("audit-verify", "audit verify")
        await self.good("profiles", "config list")
        await self.good("doctor", "doctor")
        await self.good("gc", "gc", "--dry-run")
        await self.good("policy-explain", "policy explain", "ls | env rm x")
        await self.good("policy-replay", "policy replay", "--rules", str(self._rules()))

    def _rules(self) -> Path:
        path = self._person.home / "rules.json"
        path.write_text(json.dumps({"permissions": {"deny": ["Bash(rm *)"]}}))
        return path

    def _transcript(self) -> Path:
        said = {"role": "user", "content": "Hello"}
        path = self._person.home / "transcript.jsonl"
        path.write_text(json.dumps({"type": "user", "uuid": "u", "parentUuid": None, "message": said}) + "\n")
        return path

    async def good(self, schema: str, command: str, *arguments: str, **extra: str) -> Any:
        """Validates a command's output, and its error output with an unknown API key.

        An error is JSON of the same schema, with its exit code.
        """
        argv = [*command.split(), "--json", *arguments]
        done = await self._person.run(*argv, **extra)
        require(holds=done.code == 0, otherwise=f"`{command} --json` exited with {done.code}: {done.out}{done.err}")
        value = self._valid(schema, command, done)
        if command not in _LOCAL and command not in self.commands:
            refused = await self._person.run(*argv, **{**extra, "FOOTPLATE_API_KEY": "nobody"})
            error = self._valid(schema, command, refused)
            require(holds=error["exit_code"] == refused.code == 1, otherwise=f"`{command}`: {refused}")
            require(holds=bool(error["error"]["help"]), otherwise=f"`{command}` has no help for the error: {error}")
        self.commands.add(command)
        return value

    async def _lines(self, schema: str, command: str, *arguments: str) -> None:
        done = await self._person.run(command, *arguments)
        values: Sequence[Done] = [Done(done.code, line, done.err) for line in done.out.splitlines()]
        require(holds=bool(values) and done.code == 0, otherwise=f"`{command}`: {done}")
        for value in values:
            self._valid(schema, command, value)
        self.commands.add(command)

    def _valid(self, schema: str, command: str, done: Done) -> Any:
        require(holds=not done.err, otherwise=f"`{command} --json` writes to stderr: {done.err}")
        value = json.loads(done.out)
        faults = [fault.message for fault in self._validators[schema].iter_errors(value)]
        require(holds=not faults, otherwise=f"`{command} --json` does not match {schema}.json: {faults}\n{done.out}")
        self.values += 1
        return value
