"""Makes the corpus's calls through the queue of a paused session, one step at a time, as a person does in manual mode.

Shell steps run in the background, without a sandbox, or on the session's terminal, which needs one. In the sandbox, the
named directory has the same path as outside. Prompt steps are run by an agent. A call that needs approval is denied.
"""

import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from bench.prove.figure import NotHeld
from bench.support.bypass.attack_tree import AttackTree
from bench.support.bypass.corpus import BypassCase
from bench.support.bypass.session_attempts import BypassSessions
from bench.support.clients import Client, Event
from bench.support.cluster import Cluster, open_cluster
from footplate.client import AsyncFootplate
from footplate.client.steps import Step
from footplate.stack.orphan_processes import wait_until

SHELL: Final = "shell"
"""The harness of shell steps."""
BACKGROUND, TERMINAL = "in the background", "on the terminal"
_SETTINGS: Final = {
    "FOOTPLATE_NAMED_DIRECTORIES": "true",
    "FOOTPLATE_SUBAGENT_HOLD": "0",
}
_STEP_SECONDS: Final = 20
_PATIENCE: Final = 120.0


@asynccontextmanager
async def open_manual_sessions(environment: str) -> AsyncIterator["ManualSessions"]:
    """`environment`: where commands run, `unsandboxed` or `sandbox`."""
    settings = {**_SETTINGS, "FOOTPLATE_ENVIRONMENT": environment}
    with tempfile.TemporaryDirectory(prefix="footplate-arena-", ignore_cleanup_errors=True) as folder:
        async with (
            open_cluster(environment=settings) as cluster,
            Client(cluster) as client,
            AsyncFootplate(cluster.base_urls[0], cluster.key, patience=_PATIENCE) as footplate,
        ):
            yield ManualSessions(cluster, client, AttackTree(Path(folder)), footplate)


class ManualSessions(BypassSessions):
    def __init__(self, cluster: Cluster, client: Client, tree: AttackTree, footplate: AsyncFootplate) -> None:
        super().__init__(cluster, client, tree)
        self._footplate = footplate

    async def send_batch(
        self, harness: str, caller: str, batch: Sequence[BypassCase], rules: Mapping[str, Any]
    ) -> tuple[str, list[Event]]:
        if harness != SHELL:
            return await super().send_batch(harness, caller, batch, rules)
        self.tree.reset()
        session_id = await self.create_session(harness, caller, rules)
        before = self.tree.read_state(batch[0].rules)
        await self._run_steps(
            session_id,
            [
                {
                    "kind": "shell",
                    "command": self.fill_placeholders(case),
                    "terminal": caller == TERMINAL,
                    "on_failure": "continue",
                    "timeout_seconds": _STEP_SECONDS,
                }
                for case in batch
            ],
        )
        return await self.find_effect(session_id, batch[0].rules, before)

    async def run_turn(self, session_id: str, prompt: str) -> None:
        await self._run_steps(session_id, [{"kind": "prompt", "content": prompt, "on_failure": "continue"}])

    async def _run_steps(self, session_id: str, steps: Sequence[Mapping[str, Any]]) -> None:
        await self._footplate.steps.pause(session_id)
        for step in await self._footplate.steps.add(session_id, steps):
            await self._footplate.steps.next(session_id)
            await self._wait_for_end(step)

    async def _wait_for_end(self, step: Step) -> None:
        """Waits until the step has ended, and denies its calls that need approval."""

        async def has_ended() -> bool:
            found = await self._footplate.steps.retrieve(step.session_id, step.id)
            if found.waiting_for == "action":
                async for approval in self._footplate.approvals.list(session_id=step.session_id):
                    await self._footplate.approvals.deny(approval)
            return found.state not in {"pending", "running"}

        if not await wait_until(has_ended, _PATIENCE):
            raise NotHeld(f"a step did not end: {await self._footplate.steps.retrieve(step.session_id, step.id)}")
