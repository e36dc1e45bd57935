"""The `claude` harness: runs one turn with the Claude Code CLI and records it in the log."""

import asyncio
import contextlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from footplate.domain.errors import HandOver, Temporary
from footplate.domain.ports.harness import Entry, McpAccess, SteerMessage, TurnContext, UpcomingTurn, WebAccess
from footplate.domain.projects.project import Trust
from footplate.domain.sessions.events import Event
from footplate.domain.sessions.groups import WAIT_SESSIONS
from footplate.domain.sessions.questions import ASK_USER
from footplate.domain.sessions.turns import TurnOutcome, TurnStatus
from footplate.harness import mcp, turn_outcome_factories
from footplate.harness.claude import outcomes, recovery
from footplate.harness.claude.permissions import subagent_approvals
from footplate.harness.claude.permissions.approved_call_runner import ApprovedCallRunner
from footplate.harness.claude.permissions.custom_tool_names import CustomTools
from footplate.harness.claude.recording.recorder import TurnRecorder
from footplate.harness.claude.recovery import RecoveryPlan
from footplate.harness.claude.session import cli_options, repository_config
from footplate.harness.claude.session.cli_connection import CliConnection
from footplate.harness.claude.session.repository_config import RepositoryConfig
from footplate.harness.claude.transcripts import transcript_lines
from footplate.harness.claude.transcripts.sdk_message_parser import RunEnded
from footplate.harness.claude.transcripts.transcript_lines import Transcript
from footplate.harness.stop_hooks import StopHooks
from footplate.harness.tool_calls.session_tools import SessionTools

if TYPE_CHECKING:
    from footplate.harness.mcp.tool_client import McpServers

_INTERRUPT_SECONDS: Final = 5.0
"""Seconds that the CLI has to stop after an interrupt. Then it is killed."""
_POLL_SECONDS: Final = 0.2
"""Seconds between two checks for interrupted subagents."""


_STEERING_POLL_SECONDS: Final = 0.1


class ClaudeHarness:
    def __init__(
        self,
        mcp_access: McpAccess | None = None,
        web: WebAccess | None = None,
        *,
        starts: int = 1,
        hold_seconds: float = 0.0,
    ) -> None:
        """`mcp_access`: limits for connections to MCP servers. `web`: limits for web calls that the worker makes.
        `starts`: how many CLIs may start at once. Each start uses a processor for a second, so more parallel starts
        would not be faster and would slow running turns. `hold_seconds`: how long a subagent's call waits for approval.
        """
        self._mcp_access = mcp_access or McpAccess()
        self._web = web or WebAccess()
        self._starts = asyncio.Semaphore(starts)
        self._hold_seconds = hold_seconds

    async def prepare(self, upcoming: UpcomingTurn) -> CliConnection | None:
        """Starts a CLI that waits for the session's next prompt. Returns None if something must be logged by the turn
        first: results of open calls, the repository's instructions, or errors of MCP servers.
        """
        cli_options.check_config(upcoming.config)
        if upcoming.config.mcp_servers:
            return None
        conversation = Transcript(upcoming.history)
        if conversation.open_calls() or any(
            project.trust is not Trust.NOTHING for project in upcoming.config.projects[:1]
        ):
            return None
        session_id = transcript_lines.derive_uuid(upcoming.session_id)
        files = conversation.files(session_id)
        return await CliConnection.start(
            upcoming, None, session_id=session_id, files=files, given=RepositoryConfig(), starts=self._starts
        )

    async def run(self, turn: TurnContext) -> TurnOutcome:
        cli_options.check_config(turn.config)
        conversation = Transcript(turn.history)
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        custom = CustomTools(turn.config)
        plan = recovery.plan_recovery(
            turn.turn_id,
            conversation,
            turn.turn_events,
            timestamp=now,
            custom=custom,
            superseded_events=turn.superseded_events,
        )
        recorder = TurnRecorder(turn, conversation, plan.responses, hold_seconds=self._hold_seconds)
        servers = await mcp.create_servers(turn, self._mcp_access)
        call_runner = ApprovedCallRunner(turn, servers, self._web, timestamp=now)
        run = _TurnRun(turn, conversation, plan, recorder, call_runner, self._starts, servers)
        try:
            return await run.run()
        finally:
            recorder.close()
            await run.close_servers()
            if turn.warm_process is not None and not run.used_warm_process:
                await turn.warm_process.aclose()


class _TurnRun:
    def __init__(
        self,
        turn: TurnContext,
        conversation: Transcript,
        plan: RecoveryPlan,
        recorder: TurnRecorder,
        call_runner: ApprovedCallRunner,
        starts: asyncio.Semaphore,
        servers: "McpServers | None" = None,
    ) -> None:
        self._turn = turn
        self._conversation = conversation
        self._plan = plan
        self._recorder = recorder
        self._call_runner = call_runner
        self._approved_call_entries: Sequence[Entry] = ()
        """Entries of approved calls that the worker ran."""
        self._starts = starts
        self._repository_config = repository_config.select_config(turn.project_instructions)
        self._servers = servers
        self._warm_connection = (
            turn.warm_process
            if isinstance(turn.warm_process, CliConnection) and self._can_reuse(turn.warm_process)
            else None
        )
        """The warm CLI of the session's last turn, if this turn can use it."""
        self.used_warm_process = False
        self._stays_warm = False
        self._stop_hooks = StopHooks(turn)

    async def run(self) -> TurnOutcome:
        turn, plan = self._turn, self._plan
        for use in plan.lost_requests:
            assert turn.held_approvals is not None
            await turn.held_approvals.close(use.id, subagent_approvals.SUBAGENT_ENDED)
        if plan.next_step == "interrupted" or turn.interrupt.is_set():
            marks = [] if plan.next_step == "interrupted" else [transcript_lines.interrupted_mark(turn.turn_id)]
            await turn.log.append(plan.events, entries=[*plan.entries, *marks])
            return turn_outcome_factories.interrupted("")
        if plan.next_step == "waiting":
            if plan.events or plan.entries:
                await turn.log.append(plan.events, entries=plan.entries)
            await SessionTools(turn).wait_again()
            return turn_outcome_factories.awaiting(plan.pending)
        steering: Sequence[SteerMessage] = ()
        if plan.next_step == "answered":
            steering = await self._claim_steering() or await self._stop_feedback(plan.text, plan.responses)
            if not steering:
                if plan.events:
                    await turn.log.append(plan.events)
                return outcomes.finished(plan.text)
        if plan.responses >= turn.config.max_iterations:
            await turn.log.append(plan.events, entries=plan.entries)
            return turn_outcome_factories.limit_reached(turn.config.max_iterations)
        if turn.handover.is_set():
            await turn.log.append(plan.events, entries=plan.entries)
            raise HandOver
        return await self._start(steering)

    async def _start(self, steering: Sequence[SteerMessage]) -> TurnOutcome:
        turn, plan = self._turn, self._plan
        server_events = (
            await self._servers.list_tools(turn.interrupt) if self._servers and not self._warm_connection else []
        )
        events, entries = [*plan.events, *server_events], plan.entries
        if plan.approved_calls:
            await turn.log.append(events, entries=entries)
            self._approved_call_entries = await self._call_runner.run_calls(plan.approved_calls)
            events, entries = list[Event](), ()
            if turn.interrupt.is_set():
                await turn.log.append(entries=[transcript_lines.interrupted_mark(turn.turn_id)])
                return turn_outcome_factories.interrupted("")
        await self._recorder.begin_request(events, entries, repository=self._repository_config.record)
        return await self._work_and_record(steering)

    def _can_reuse(self, warm: CliConnection) -> bool:
        return (
            warm.alive
            and warm.repository == self._repository_config
            and self._plan.next_step == "prompt"
            and not self._plan.approved_calls
        )

    async def close_servers(self) -> None:
        if self._servers is not None:
            await self._servers.aclose()

    async def _work_and_record(self, steering: Sequence[SteerMessage]) -> TurnOutcome:
        try:
            return await self._work(steering)
        except HandOver:
            raise
        except BaseException:
            if not self._recorder.failed.done():
                await self._record_quietly()
            raise

    async def _work(self, steering: Sequence[SteerMessage]) -> TurnOutcome:
        turn = self._turn
        opening = asyncio.create_task(self._open_connection())
        stop = asyncio.create_task(turn.interrupt.wait())
        connection: CliConnection | None = None
        try:
            await asyncio.wait({opening, stop}, return_when=asyncio.FIRST_COMPLETED)
            if not opening.done():
                return await self._record_interrupt("")
            connection = opening.result()
            if self._plan.next_step == "prompt":
                await connection.send_message(
                    transcript_lines.derive_uuid(turn.turn_id), await turn.resolve_attachments(turn.content)
                )
            await self._send_messages(connection, steering)
            stopping = asyncio.create_task(self._stop_interrupted_subagents(connection))
            try:
                outcome = await self._run_until_ended(connection, stop)
            finally:
                stopping.cancel()
                await asyncio.gather(stopping, return_exceptions=True)
            # A CLI that was started in the middle of a turn has only the remaining limits of that turn, so it is not
            # reused.
            usable = connection.alive and connection.has_all_servers
            if outcome.status is TurnStatus.COMPLETED and usable and not self._plan.responses:
                await connection.end_tool_processes(turn)
                self._stays_warm = turn.keep_warm(connection)
            return outcome
        finally:
            stop.cancel()
            if not opening.done():
                opening.cancel()
            await asyncio.gather(opening, stop, return_exceptions=True)
            if connection is None and not opening.cancelled() and opening.exception() is None:
                connection = opening.result()
            if connection is not None and not self._stays_warm:
                await connection.aclose()

    async def _open_connection(self) -> CliConnection:
        turn = self._turn
        if (warm := self._warm_connection) is not None:
            self.used_warm_process = True
            await warm.switch_turn(turn, self._recorder, self._servers)
            return warm
        # The conversation comes from the log and not from the worker's disk, so it is complete on every host.
        history = [*turn.history, *self._plan.entries, *self._approved_call_entries]
        if self._plan.next_step == "prompt":
            own_entries = [entry for entry in turn.history if entry.body.get("turn_id") == turn.turn_id]
            history = [entry for entry in history if entry not in own_entries]
        session_id = transcript_lines.derive_uuid(turn.session_id)
        files = Transcript(history).files(session_id)
        resumes_turn = self._plan.next_step == "continue"
        return await CliConnection.start(
            turn,
            self._recorder,
            session_id=session_id,
            files=files,
            given=self._repository_config,
            starts=self._starts,
            resumes_turn=resumes_turn,
            servers=self._servers,
        )

    async def _run_until_ended(self, connection: CliConnection, stop: "asyncio.Task[bool]") -> TurnOutcome:
        recorder = self._recorder
        working = asyncio.create_task(connection.wait_for_result())
        steered = asyncio.create_task(self._forward_messages(connection))
        handover = asyncio.create_task(self._hand_over())
        parking = asyncio.create_task(recorder.pending_calls.parked.wait())
        waited_for: list[asyncio.Future[Any]] = [stop, steered, handover, parking, recorder.failed]
        try:
            while True:
                await asyncio.wait([working, *waited_for], return_when=asyncio.FIRST_COMPLETED)
                for broken in (recorder.failed, steered, handover):
                    if broken.done():
                        broken.result()
                if stop.done():
                    return await self._stop_cli(connection, working)
                outcome = await self._finish(connection, working)
                if outcome is not None:
                    return outcome
                working = asyncio.create_task(connection.wait_for_result())
        finally:
            tasks = (steered, handover, parking, working)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _hand_over(self) -> None:
        """When the worker stops, hands the turn over at a point where no call is open."""
        await self._turn.handover.wait()
        await self._recorder.hand_over()
        raise HandOver

    async def _forward_messages(self, connection: CliConnection) -> None:
        """Forwards the user's messages during the turn. The CLI adds them after a call or at the end of its
        response.
        """

        async def forward() -> None:
            await self._send_messages(connection, await self._claim_steering())

        parking_tools = {ASK_USER, WAIT_SESSIONS}
        if self._turn.config.custom_tools or not parking_tools.isdisjoint(self._turn.config.tools):
            # Not while the model responds: it may call a custom tool or ask a question, and a message would then
            # replace the result.
            self._recorder.pending_calls.before_next_request = forward
            await asyncio.get_running_loop().create_future()
        while True:
            await asyncio.sleep(_STEERING_POLL_SECONDS)
            await forward()

    async def _park(self) -> TurnOutcome:
        """Parks the turn until the client responds. All other calls are done."""
        await self._recorder.wait_until_calls_closed()
        await self._recorder.finish("lost")
        return turn_outcome_factories.awaiting(self._recorder.pending_calls.pending_event_ids)

    async def _finish(self, connection: CliConnection, working: "asyncio.Task[RunEnded]") -> TurnOutcome | None:
        """The turn's outcome, or None if the turn continues because of new messages."""
        if self._recorder.pending_calls.pending_event_ids:
            return await self._park()
        ended = working.result()
        if ended.is_error or ended.subtype != "success":
            await self._recorder.finish("lost")
            if ended.subtype == "error_max_turns":
                return turn_outcome_factories.limit_reached(self._turn.config.max_iterations)
            raise outcomes.failure_error(ended, self._recorder.limited_until)
        await self._recorder.finish()
        prompt_uuid = transcript_lines.derive_uuid(self._turn.turn_id)
        if connection.pending_messages - {prompt_uuid}:
            return None
        steering = await self._claim_steering()
        if steering and self._recorder.responses < self._turn.config.max_iterations:
            await self._send_messages(connection, steering)
            return None
        if feedback := await self._stop_feedback(ended.text, self._recorder.responses):
            await self._send_messages(connection, feedback)
            return None
        return outcomes.finished(ended.text, ended.stop_reason)

    async def _stop_feedback(self, text: str, responses: int) -> list[SteerMessage]:
        """Feedback of `Stop` hooks that block the end of the turn, unless its limit of responses is reached."""
        feedback = await self._stop_hooks.run_stop_hooks(text) if responses < self._turn.config.max_iterations else None
        return [] if feedback is None else [feedback]

    async def _stop_cli(self, connection: CliConnection, working: "asyncio.Task[RunEnded]") -> TurnOutcome:
        """Asks the CLI to stop, which keeps the text so far. If it does not stop in time, it is killed."""
        text = self._recorder.partial_text
        try:
            async with asyncio.timeout(_INTERRUPT_SECONDS):
                await connection.interrupt()
                await asyncio.wait({working})
        except (TimeoutError, Temporary):
            await connection.aclose()
        return await self._record_interrupt(self._recorder.partial_text or text)

    async def _stop_interrupted_subagents(self, connection: CliConnection) -> None:
        """Stops subagents whose threads the user interrupts, while the turn runs."""
        while self._turn.config.subagents:
            for agent_id in self._recorder.take_interrupted_subagents():
                await connection.stop_subagent(agent_id)
            await asyncio.sleep(_POLL_SECONDS)

    async def _record_interrupt(self, text: str) -> TurnOutcome:
        await self._recorder.finish("interrupted")
        return turn_outcome_factories.interrupted(text)

    async def _record_quietly(self) -> None:
        """Logs the work of a lost CLI as far as possible."""
        with contextlib.suppress(Exception):  # the first error is the one to report
            await self._recorder.finish("lost")

    async def _claim_steering(self) -> list[SteerMessage]:
        """New messages for the running turn. A later attempt may receive the same message again, so those that already
        joined the conversation are filtered out.
        """
        messages = await self._turn.claim_steering()
        return [item for item in messages if transcript_lines.derive_uuid(item.event_id) not in self._recorder.inputs]

    async def _send_messages(self, connection: CliConnection, steering: Sequence[SteerMessage]) -> None:
        for item in steering:
            is_hook_feedback = item.event_id in self._stop_hooks.feedback_ids
            content = item.content if is_hook_feedback else await self._turn.resolve_steering(item.content)
            await connection.send_message(transcript_lines.derive_uuid(item.event_id), content)
