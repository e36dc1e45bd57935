"""The `claude` harness: runs one turn with a CLI and records everything in the log."""

import asyncio
import contextlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from footplate.domain.errors import HandOver, Temporary
from footplate.domain.ports import Ahead, Entry, McpAccess, SteerMessage, TurnContext, WebAccess
from footplate.domain.projects import Trust
from footplate.domain.turns import Outcome, TurnStatus
from footplate.harness import endings, mcp
from footplate.harness.claude import holding, options, outcomes, recovery, repository, transcript
from footplate.harness.claude.allowed import Making
from footplate.harness.claude.connection import Connection
from footplate.harness.claude.custom_tools import CustomTools
from footplate.harness.claude.mapping import Ended
from footplate.harness.claude.recorder import Recorder
from footplate.harness.claude.recovery import Settlement
from footplate.harness.claude.repository import Given
from footplate.harness.claude.transcript import Transcript
from footplate.harness.stops import Stops

if TYPE_CHECKING:
    from footplate.harness.mcp.servers import Servers

_STOPS_IN: Final = 5.0
"""Seconds that the CLI has to stop after an interrupt. Then it is killed."""


_LISTENS_EVERY: Final = 0.1


class ClaudeHarness:
    def __init__(
        self, mcp_access: McpAccess | None = None, web: WebAccess | None = None, *, starts: int = 1, hold_seconds: float = 0.0
    ) -> None:
        """`mcp_access`: limits for connections to MCP servers. `web`: limits for web calls that the worker makes.
        `starts`: how many CLIs may start at once. Each start uses a processor for a second, so more parallel starts
        would not be faster and would slow running turns. `hold_seconds`: how long a subagent's call waits for approval.
        """
        self._access = mcp_access or McpAccess()
        self._web = web or WebAccess()
        self._starts = asyncio.Semaphore(starts)
        self._hold = hold_seconds

    async def prepare(self, upcoming: Ahead) -> Connection | None:
        """Starts a CLI that waits for the session's next prompt. Returns None if something must be logged by the turn
        first: results of open calls, the repository's instructions, or errors of MCP servers.
        """
        options.check(upcoming.config)
        if upcoming.config.mcp_servers:
            return None
        conversation = Transcript(upcoming.history)
        if conversation.open_calls() or any(project.trust is not Trust.NOTHING for project in upcoming.config.projects[:1]):
            return None
        session_id = transcript.own_uuid(upcoming.session_id)
        files = conversation.files(session_id)
        return await Connection.open(
            upcoming, None, session_id=session_id, files=files, given=Given(), starts=self._starts
        )

    async def run(self, turn: TurnContext) -> Outcome:
        options.check(turn.config)
        conversation = Transcript(turn.history)
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        custom = CustomTools(turn.config)
        plan = recovery.settle(turn.turn_id, conversation, turn.turn_events, timestamp=now, custom=custom, left=turn.left)
        recorder = Recorder(turn, conversation, plan.responses, hold_seconds=self._hold)
        servers = await mcp.servers_of(turn.config, self._access)
        call_runner = Making(turn, servers, self._web, timestamp=now)
        run = _Run(turn, conversation, plan, recorder, call_runner, self._starts, servers)
        try:
            return await run.run()
        finally:
            recorder.close()
            await run.close_servers()
            if turn.kept is not None and not run.used_kept:
                await turn.kept.aclose()


class _Run:
    def __init__(
        self,
        turn: TurnContext,
        conversation: Transcript,
        plan: Settlement,
        recorder: Recorder,
        call_runner: Making,
        starts: asyncio.Semaphore,
        servers: "Servers | None" = None,
    ) -> None:
        self._turn = turn
        self._found = conversation
        self._settled = plan
        self._recorder = recorder
        self._making = call_runner
        self._made: Sequence[Entry] = ()
        """Entries of approved calls that the worker ran."""
        self._starts = starts
        self._given = repository.given(turn.brought)
        self._servers = servers
        self._kept = turn.kept if isinstance(turn.kept, Connection) and self._fits(turn.kept) else None
        """The warm CLI of the session's last turn, if this turn can use it."""
        self.used_kept = False
        self._keeps = False
        self._stops = Stops(turn)

    async def run(self) -> Outcome:
        turn, plan = self._turn, self._settled
        for use in plan.lost:
            assert turn.answers is not None
            await turn.answers.close(use.id, holding.LOST)
        if plan.way == "interrupted" or turn.interrupt.is_set():
            marks = [] if plan.way == "interrupted" else [transcript.mark_interrupted(turn.turn_id)]
            await turn.log.append(plan.events, entries=[*plan.entries, *marks])
            return endings.interrupted("")
        if plan.way == "waiting":
            if plan.events or plan.entries:
                await turn.log.append(plan.events, entries=plan.entries)
            return endings.awaiting(plan.pending)
        steering: Sequence[SteerMessage] = ()
        if plan.way == "answered":
            steering = await self._steering() or await self._held_up(plan.text, plan.responses)
            if not steering:
                if plan.events:
                    await turn.log.append(plan.events)
                return outcomes.answered(plan.text)
        if plan.responses >= turn.config.max_iterations:
            await turn.log.append(plan.events, entries=plan.entries)
            return endings.limit_reached(turn.config.max_iterations)
        if turn.handover.is_set():
            await turn.log.append(plan.events, entries=plan.entries)
            raise HandOver
        return await self._begin(steering)

    async def _begin(self, steering: Sequence[SteerMessage]) -> Outcome:
        turn, plan = self._turn, self._settled
        server_events = await self._servers.open(turn.interrupt) if self._servers and not self._kept else []
        events, entries = [*plan.events, *server_events], plan.entries
        if plan.allowed:
            await turn.log.append(events, entries=entries)
            self._made, events, entries = await self._making.make(plan.allowed), [], ()
            if turn.interrupt.is_set():
                await turn.log.append(entries=[transcript.mark_interrupted(turn.turn_id)])
                return endings.interrupted("")
        await self._recorder.begin(events, entries, repository=self._given.record)
        return await self._work_and_settle(steering)

    def _fits(self, warm: Connection) -> bool:
        return warm.alive and warm.given == self._given and self._settled.way == "prompt" and not self._settled.allowed

    async def close_servers(self) -> None:
        if self._servers is not None:
            await self._servers.aclose()

    async def _work_and_settle(self, steering: Sequence[SteerMessage]) -> Outcome:
        try:
            return await self._work(steering)
        except HandOver:
            raise
        except BaseException:
            if not self._recorder.failed.done():
                await self._settle_quietly()
            raise

    async def _work(self, steering: Sequence[SteerMessage]) -> Outcome:
        turn = self._turn
        opening = asyncio.create_task(self._open())
        stop = asyncio.create_task(turn.interrupt.wait())
        connection: Connection | None = None
        try:
            await asyncio.wait({opening, stop}, return_when=asyncio.FIRST_COMPLETED)
            if not opening.done():
                return await self._stopped("")
            connection = opening.result()
            if self._settled.way == "prompt":
                await connection.send(transcript.own_uuid(turn.turn_id), await turn.resolve(turn.content))
            await self._send(connection, steering)
            outcome = await self._until_ended(connection, stop)
            # A CLI that was started in the middle of a turn has only the remaining limits of that turn, so it is not
            # reused.
            usable = connection.alive and connection.whole
            if outcome.status is TurnStatus.COMPLETED and usable and not self._settled.responses:
                await connection.rest(turn)
                self._keeps = turn.keep(connection)
            return outcome
        finally:
            stop.cancel()
            if not opening.done():
                opening.cancel()
            await asyncio.gather(opening, stop, return_exceptions=True)
            if connection is None and not opening.cancelled() and opening.exception() is None:
                connection = opening.result()
            if connection is not None and not self._keeps:
                await connection.aclose()

    async def _open(self) -> Connection:
        turn = self._turn
        if (warm := self._kept) is not None:
            self.used_kept = True
            await warm.serve(turn, self._recorder, self._servers)
            return warm
        # The conversation comes from the log and not from the worker's disk, so it is complete on every host.
        history = [*turn.history, *self._settled.entries, *self._made]
        if self._settled.way == "prompt":
            own_entries = [kept for kept in turn.history if kept.body.get("turn_id") == turn.turn_id]
            history = [kept for kept in history if kept not in own_entries]
        session_id = transcript.own_uuid(turn.session_id)
        files = Transcript(history).files(session_id)
        resumes_turn = self._settled.way == "continue"
        return await Connection.open(
            turn,
            self._recorder,
            session_id=session_id,
            files=files,
            given=self._given,
            starts=self._starts,
            resumes_turn=resumes_turn,
            servers=self._servers,
        )

    async def _until_ended(self, connection: Connection, stop: "asyncio.Task[bool]") -> Outcome:
        recorder = self._recorder
        working = asyncio.create_task(connection.ended())
        steered = asyncio.create_task(self._steer(connection))
        handover = asyncio.create_task(self._hand_over())
        parking = asyncio.create_task(recorder.asking.over.wait())
        waited_for: list[asyncio.Future[Any]] = [stop, steered, handover, parking, recorder.failed]
        try:
            while True:
                await asyncio.wait([working, *waited_for], return_when=asyncio.FIRST_COMPLETED)
                for broken in (recorder.failed, steered, handover):
                    if broken.done():
                        broken.result()
                if stop.done():
                    return await self._interrupted(connection, working)
                outcome = await self._ended(connection, working)
                if outcome is not None:
                    return outcome
                working = asyncio.create_task(connection.ended())
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

    async def _steer(self, connection: Connection) -> None:
        """Forwards the user's messages during the turn. The CLI adds them after a call or at the end of its
        response.
        """

        async def forward() -> None:
            await self._send(connection, await self._steering())

        if self._turn.config.custom_tools:
            # Not while the model responds: it may call a custom tool, and a message would then replace the tool's
            # result.
            self._recorder.asking.between = forward
            await asyncio.get_running_loop().create_future()
        while True:
            await asyncio.sleep(_LISTENS_EVERY)
            await forward()

    async def _awaiting(self) -> Outcome:
        """Parks the turn until the client responds. All other calls are done."""
        await self._recorder.calls_closed()
        await self._recorder.settle("lost")
        return endings.awaiting(self._recorder.asking.pending)

    async def _ended(self, connection: Connection, working: "asyncio.Task[Ended]") -> Outcome | None:
        """The turn's outcome, or None if the turn continues because of new messages."""
        if self._recorder.asking.pending:
            return await self._awaiting()
        ended = working.result()
        if ended.is_error or ended.subtype != "success":
            await self._recorder.settle("lost")
            if ended.subtype == "error_max_turns":
                return endings.limit_reached(self._turn.config.max_iterations)
            raise outcomes.failure(ended, self._recorder.limited_until)
        await self._recorder.settle()
        prompt_uuid = transcript.own_uuid(self._turn.turn_id)
        if connection.waiting - {prompt_uuid}:
            return None
        steering = await self._steering()
        if steering and self._recorder.responses < self._turn.config.max_iterations:
            await self._send(connection, steering)
            return None
        if feedback := await self._held_up(ended.text, self._recorder.responses):
            await self._send(connection, feedback)
            return None
        return outcomes.answered(ended.text, ended.stop_reason)

    async def _held_up(self, text: str, responses: int) -> list[SteerMessage]:
        """Feedback of `Stop` hooks that block the end of the turn, unless its limit of responses is reached."""
        feedback = await self._stops.held_up(text) if responses < self._turn.config.max_iterations else None
        return [] if feedback is None else [feedback]

    async def _interrupted(self, connection: Connection, working: "asyncio.Task[Ended]") -> Outcome:
        """Asks the CLI to stop, which keeps the text so far. If it does not stop in time, it is killed."""
        text = self._recorder.partial_text
        try:
            async with asyncio.timeout(_STOPS_IN):
                await connection.interrupt()
                await asyncio.wait({working})
        except (TimeoutError, Temporary):
            await connection.aclose()
        return await self._stopped(self._recorder.partial_text or text)

    async def _stopped(self, text: str) -> Outcome:
        await self._recorder.settle("interrupted")
        return endings.interrupted(text)

    async def _settle_quietly(self) -> None:
        """Logs the work of a lost CLI as far as possible."""
        with contextlib.suppress(Exception):  # the first error is the one to report
            await self._recorder.settle("lost")

    async def _steering(self) -> list[SteerMessage]:
        """New messages for the running turn. A later attempt may receive the same message again, so those that already
        joined the conversation are filtered out.
        """
        messages = await self._turn.take_steering()
        return [item for item in messages if transcript.own_uuid(item.event_id) not in self._recorder.inputs]

    async def _send(self, connection: Connection, steering: Sequence[SteerMessage]) -> None:
        for item in steering:
            is_hook_feedback = item.event_id in self._stops.said
            content = item.content if is_hook_feedback else await self._turn.resolve_steering(item.content)
            await connection.send(transcript.own_uuid(item.event_id), content)
