"""Runs the setup commands of a session's projects at the start of a turn, before anything else runs in the environment.

A setup runs once in each tree that is created or restored on a host. If it is interrupted, or its worker dies, it runs
again from the start. Its command is subject to the gate like any other, but it cannot wait for an approval.
"""

import shlex
from collections.abc import Sequence
from typing import Final

from footplate import failpoints
from footplate.domain.files.session_outputs import NO_OUTPUTS
from footplate.domain.json import Json
from footplate.domain.policy.permissions import Decision, PermissionOutcome
from footplate.domain.ports.engine import Claim, OpenEnvironment, SessionTree
from footplate.domain.ports.harness import CommandResult, Gate, TurnLog
from footplate.domain.ports.project_setup import SetupRequest, TreeSetup
from footplate.domain.projects.project import SessionProject
from footplate.domain.projects.setup import (
    HIDDEN_VARIABLES,
    RESTORED_VARIABLE,
    SetupFailed,
    SetupNotAllowed,
)
from footplate.domain.sessions.events import SETUP_ENDED, SETUP_STARTED, SETUP_TOOL, Event, permission_fields

_PROBE: Final = (
    "uname -sm; cat /etc/os-release 2>/dev/null; "
    "for program in python3 node ruby; do command -v $program && $program --version; done 2>&1; true"
)
"""Prints what compiled packages depend on."""
_PROBE_SECONDS: Final = 20.0
_LOGGED_CHARACTERS: Final = 16_000
_MESSAGE_CHARACTERS: Final = 2_000


class ProjectSetups:
    """The setups of one turn."""

    def __init__(
        self,
        trees: TreeSetup,
        claim: Claim,
        environment: OpenEnvironment,
        gate: Gate,
        turn_log: TurnLog,
        *,
        seconds: float,
    ) -> None:
        """`seconds`: the time limit for one command."""
        self._trees = trees
        self._claim = claim
        self._environment = environment
        self._gate = gate
        self._log = turn_log
        self._seconds = seconds

    async def run(self) -> None:
        """Runs the setups that are needed. Raises `SetupFailed` or `SetupNotAllowed`."""
        if not any(project.setup is not None for project in self._claim.config.projects):
            return
        await self._environment.ensure_open()
        for number, project in enumerate(self._claim.config.projects):
            tree = SessionTree(
                organisation=self._claim.organisation,
                session_id=self._claim.session_id,
                project=project,
                files=self._environment.trees[project.id],
                is_additional=number > 0,
            )
            if await self._trees.needs_setup(tree):
                await self._set_up(project, tree)

    async def _set_up(self, project: SessionProject, tree: SessionTree) -> None:
        assert project.setup is not None
        environment, inside_path = self._environment, self._environment.inside_paths[project.id]
        decision = await self._check_allowed(project, project.setup, inside_path)
        # Hooks of the session may have run commands to decide.
        is_untouched = not environment.has_run_commands and self._starts_from_base(project)
        request = SetupRequest(
            inside_path=inside_path,
            platform=await self._describe_platform(),
            is_untouched=is_untouched,
            is_home_empty=_is_empty(environment),
        )
        self._log.check()
        start = await self._trees.begin_setup(tree, request)
        restored: list[Json] = [*start.restored]
        described = {"project_id": project.id, "name": project.name}
        started = {**described, "command": project.setup, "restored": restored, **permission_fields(decision)}
        await self._log.append([Event(SETUP_STARTED, started)])
        await failpoints.hit("setup_started")
        result = await self._run_command(project.setup, inside_path, start.restored)
        await failpoints.hit("setup_ran")
        stored: Sequence[str] = ()
        if result.status == "completed":
            stored = await self._trees.complete_setup(tree)
        self._log.check()
        await self._log.append([Event(SETUP_ENDED, {**described, **_describe_result(result), "stored": [*stored]})])
        if result.status != "completed":
            raise _failure(project.name, result, self._seconds)

    def _starts_from_base(self, project: SessionProject) -> bool:
        """Whether the session has no files but those of its base commit, which no caller has selected, and no second
        project whose setup could change this one.
        """
        claim = self._claim
        return (
            not claim.files.snapshots
            and not claim.files.ancestors
            and claim.files.outputs == NO_OUTPUTS
            and claim.forked_at is None
            and len(claim.config.projects) == 1
            and project.base is not None
            and not project.base.is_selected
        )

    async def _check_allowed(self, project: SessionProject, command: str, inside_path: str) -> Decision:
        decision = await self._gate.decide(SETUP_TOOL, {"command": command}, directory=inside_path)
        if decision.outcome is PermissionOutcome.ALLOW:
            return decision
        if decision.outcome is PermissionOutcome.DENY:
            raise SetupNotAllowed(
                f"The setup command of the project {project.name!r} is denied: {decision.refusal}",
                help_text="Change the command or the rule.",
            )
        raise SetupNotAllowed(
            f"The setup command of the project {project.name!r} needs approval, and a setup cannot wait for one.",
            help_text=f"Allow it with a rule such as `Bash({command.splitlines()[0][:80]})`, or remove the setup.",
        )

    async def _describe_platform(self) -> str | None:
        result = await self._environment.run(["sh", "-c", _PROBE], timeout=_PROBE_SECONDS)
        if result.status != "completed" or result.truncated:
            return None
        return f"{self._environment.platform}\n{result.stdout.decode('utf-8', 'replace')}"

    async def _run_command(self, command: str, inside_path: str, restored: Sequence[str]) -> CommandResult:
        shell = 'if command -v bash >/dev/null; then exec bash -c "$1"; else exec sh -c "$1"; fi'
        variables = [f"{RESTORED_VARIABLE}={shlex.join(restored)}"]
        unset = [argument for name in HIDDEN_VARIABLES for argument in ("-u", name)]
        script = f"cd -- {shlex.quote(inside_path)} && {shell}"
        argv = ["env", *unset, *variables, "sh", "-c", script, "setup", command]
        return await self._environment.run(argv, timeout=self._seconds)


def _is_empty(environment: OpenEnvironment) -> bool:
    """Whether the session's HOME is empty."""
    home = environment.home_files
    return home is not None and home.is_dir() and next(home.iterdir(), None) is None


def _describe_result(result: CommandResult) -> dict[str, Json]:
    return {
        "status": result.status,
        "exit_code": result.exit_code,
        "duration_ms": round(result.duration * 1000),
        "output": _tail(_output_of(result), _LOGGED_CHARACTERS),
    }


def _failure(name: str, result: CommandResult, seconds: float) -> SetupFailed:
    """Return the error for a command that did not succeed, with the end of its output."""
    if result.timed_out:
        reason = f"took longer than {seconds:g} s and was stopped"
    elif result.exit_code is None:
        reason = "was ended by its environment"
    else:
        reason = f"failed with exit code {result.exit_code}"
    details = [text for text in (result.error, _tail(_output_of(result), _MESSAGE_CHARACTERS)) if text]
    return SetupFailed(
        "\n".join([f"The setup command of the project {name!r} {reason}.", *details]),
        help_text="\nCorrect the command. The session's next turn runs it again.",
    )


def _output_of(result: CommandResult) -> str:
    streams = (data.decode("utf-8", "replace").strip() for data in (result.stdout, result.stderr))
    return "\n".join(text for text in streams if text).replace("\0", "\ufffd")


def _tail(text: str, characters: int) -> str:
    return text if len(text) <= characters else f"…{text[-characters:]}"
