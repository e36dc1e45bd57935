"""The agent loop of one turn: requests a response from the model and runs its tool calls, until a response has none.

The order of writes to the log lets a turn survive the loss of its worker. A prompt is stored before it is sent
to the model, and a response as soon as it is complete. An `agent.tool_use` event is stored before a tool
starts, and the result directly after it ends. If only the event is stored, the call may have taken effect, so
no later attempt repeats it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pydantic_ai.messages import ModelResponse, ToolCallPart

from footplate import failpoints
from footplate.domain.agents.model_connections import find_provider
from footplate.domain.errors import HandOver
from footplate.domain.json import Json, JsonObject
from footplate.domain.policy.permissions import NOT_EVALUATED, Decision
from footplate.domain.policy.permissions import PermissionOutcome as Gated
from footplate.domain.ports.harness import Entry, SteerMessage, TurnContext
from footplate.domain.sessions import events as ev
from footplate.domain.sessions import questions, threads
from footplate.domain.sessions.events import Event, Usage
from footplate.domain.sessions.turns import Mode, TurnOutcome
from footplate.harness import approvals, turn_outcome_factories
from footplate.harness.interrupt import Interrupted, unless_interrupted
from footplate.harness.native import conversation_entries, recovery
from footplate.harness.native.conversation_entries import Conversation
from footplate.harness.native.recovery import UnstartedCall, WaitingCall
from footplate.harness.native.requests import provider_errors
from footplate.harness.native.requests.encoded_message_cache import RequestTemplate
from footplate.harness.native.response_stream import ResponseStream
from footplate.harness.native.subagent_runner import ExecutedCall, RunLoop, SubagentRunner
from footplate.harness.native.thread_entries import OpenThread
from footplate.harness.native.toolset import builtin_tools, output_overflow, post_tool_hooks, tool_inputs
from footplate.harness.native.toolset.call_arguments import invalid_arguments_message
from footplate.harness.native.web.web_tools import WebTools
from footplate.harness.recovery_text import CLIENT_RESULT_INTERRUPTED, INTERRUPTED
from footplate.harness.stop_hooks import StopHooks
from footplate.harness.tool_calls import command_details, session_tools
from footplate.harness.tool_calls.session_tools import SessionTools

if TYPE_CHECKING:
    from footplate.harness.mcp.tool_client import McpServers

_NOT_RUN = "Not run: the user interrupted the turn. The call had no effect."


@dataclass(slots=True)
class AgentLoop:
    """Runs one turn. Between two writes to the log are safe points without an open call or request. If its worker
    stops, the turn is handed over there.

    To save a write per iteration, the start of a model request is committed with the result that precedes it.
    """

    turn: TurnContext
    conversation: Conversation
    template: RequestTemplate = field(kw_only=True)
    web: WebTools = field(kw_only=True)
    servers: "McpServers | None" = field(kw_only=True, default=None)
    """The agent's MCP servers, if it has any."""
    server_events: Sequence[Event] = field(kw_only=True, default=())
    """Errors of servers that cannot be used, logged first."""
    run_loop: RunLoop = field(kw_only=True)
    """Runs the loop of a subagent."""
    _request_start: Event | None = field(default=None, init=False)
    """The start event of the next model request, which is logged but not ended."""
    _response_count: int = field(default=0, init=False)
    _inputs: set[str] = field(default_factory=set, init=False)
    """Sources of this turn's prompts that are already in the conversation."""
    _stop_hooks: StopHooks = field(init=False)
    _session_tools: SessionTools = field(init=False)
    _subagents: SubagentRunner = field(init=False)

    def __post_init__(self) -> None:
        self._subagents = SubagentRunner(self.turn, self.conversation, self._append, self.run_loop)
        self._stop_hooks = StopHooks(self.turn)
        self._session_tools = SessionTools(self.turn)

    async def run(self) -> TurnOutcome:
        outcome = await self._recover()
        while outcome is None:
            outcome = await self._request_response()
        return outcome

    async def _recover(self) -> TurnOutcome | None:
        """Settles the open calls of earlier attempts, then prepares the first model request."""
        own = self.conversation.lines_of_turn(self.turn.turn_id)
        self._response_count = sum(line.kind == conversation_entries.RESPONSE for line in own)
        self._inputs = {line.input for line in own if line.input}
        plan = recovery.plan_recovery(
            self.turn.turn_id,
            self.conversation,
            threads.events_of(self.turn.turn_events, None),
            threads.events_of(self.turn.superseded_events, None),
        )
        events = [*plan.events, *self.server_events]
        entries = [*plan.entries]
        if plan.needs_prompt:
            if plan.unstarted:  # calls that were approved before the new message
                await self._append(events, entries)
                events, entries = list[Event](), list[Entry]()
                if (ended := await self._run_calls(plan.unstarted, continues=False)) is not None:
                    return ended
            content = await self.turn.resolve_attachments(self.turn.content)
            entries.append(conversation_entries.prompt_entry(self.turn.turn_id, [*content]))
            return await self._commit_and_continue(events, entries)
        if not (plan.final_response or plan.interrupted or plan.unstarted or plan.waiting):
            return await self._commit_and_continue(events, entries)
        await self._append(events, entries)
        if plan.interrupted:
            return turn_outcome_factories.interrupted("")
        if plan.final_response:
            return await self._finish(plan.final_response)
        if plan.waiting:
            await self._session_tools.wait_again()
        return await self._run_calls(plan.unstarted, plan.waiting)

    async def _commit_and_continue(self, events: Sequence[Event], entries: Sequence[Entry]) -> TurnOutcome | None:
        """Commits the events and entries with the start of the next model request, unless the turn ends here."""
        if self.turn.interrupt.is_set():
            await self._append(events, conversation_entries.mark_interrupted(entries))
            return turn_outcome_factories.interrupted("")
        if self.turn.handover.is_set():
            await self._append(events, entries)
            raise HandOver
        if self._response_count >= self.turn.config.max_iterations:
            await self._append(events, entries)
            return turn_outcome_factories.limit_reached(self.turn.config.max_iterations)
        steering = await self._claim_steering()
        if steering:  # it may name files that are fetched first; finished work must not wait for that
            await self._append(events, entries)
            events, entries = (), await self._steering_entries(steering)
        self._request_start = ev.model_request_start()
        await self._append([*events, self._request_start], entries)
        return None

    async def _request_response(self) -> TurnOutcome | None:
        assert self._request_start is not None
        self.turn.log.check()
        reply = ResponseStream(self.turn.log, self.template)
        try:
            providers = {name: one.provider for name, one in self.turn.endpoints.items()}
            model = self.turn.config.model
            self.conversation.check_content(model, find_provider(model, providers))
            response = await unless_interrupted(self.turn.interrupt, reply.receive(self.conversation))
        except Interrupted:
            return await self._store_partial(reply)
        except Exception as error:
            await self._append([self._end_event(reply, is_error=True)], usage=reply.usage)
            failure = provider_errors.translate(error)
            if failure is None or failure is error:
                raise
            raise failure from error
        await self._append(
            [*reply.events(), self._end_event(reply, is_error=False)],
            [conversation_entries.response_entry(self.turn.turn_id, response)],
            usage=reply.usage,
        )
        self._response_count += 1
        if response.tool_calls:
            return await self._run_calls([UnstartedCall(call) for call in response.tool_calls])
        return await self._finish(response)

    async def _finish(self, response: ModelResponse) -> TurnOutcome | None:
        """Ends the turn, unless a user's message or a `Stop` hook's feedback arrived. Messages that arrive during the
        last response still belong to this turn.
        """
        if not self.turn.interrupt.is_set() and self._response_count < self.turn.config.max_iterations:
            steering = await self._claim_steering()
            if steering:
                return await self._commit_and_continue([], await self._steering_entries(steering))
            if (feedback := await self._stop_hooks.run_stop_hooks(response.text or "")) is not None:
                entry = conversation_entries.prompt_entry(
                    self.turn.turn_id, [*feedback.content], source=feedback.event_id
                )
                return await self._commit_and_continue([], [entry])
        refusal = (response.provider_details or {}).get("refusal") or ""
        return turn_outcome_factories.finished(response.text or "", response.finish_reason, refusal=refusal)

    async def _store_partial(self, reply: ResponseStream) -> TurnOutcome:
        partial = reply.partial_response()
        entries = [conversation_entries.response_entry(self.turn.turn_id, partial)] if partial else []
        await self._append(
            [*reply.events(), self._end_event(reply, is_error=True)],
            conversation_entries.mark_interrupted(entries),
            usage=reply.usage,
        )
        return turn_outcome_factories.interrupted(partial.text or "" if partial else "")

    async def _run_calls(
        self, todo: Sequence[UnstartedCall], already_waiting: Sequence[WaitingCall] = (), *, continues: bool = True
    ) -> TurnOutcome | None:
        """Runs the calls one after the other. Calls that need the client or an approval are requested, and the turn
        parks for them when the other calls are done. `continues`: the model gets the results next.
        """
        waiting = [*already_waiting]
        for index, item in enumerate(todo):
            remaining = todo[index + 1 :]
            if self.turn.interrupt.is_set():
                return await self._close_calls([], [], todo[index:], waiting)
            if self.turn.handover.is_set():
                raise HandOver
            await self.turn.environment.ensure_open()  # before any call is logged as started
            await failpoints.hit("before_intent")
            authorized = (
                await self._authorize_call(item, waiting) if item.started_use is None else (item.started_use, None)
            )
            if authorized is None:
                continue
            use, output = authorized
            unlogged = [use] if output is not None and item.approval_request is None else []
            executed = ExecutedCall(output)
            if output is None:
                await failpoints.hit("after_intent")
                executed = await self._run_call(item, use)
                if executed.output is None:
                    waiting.append(WaitingCall(item.call, executed.pending, thread=self._thread_of(item.call)))
                    continue
            events, entries = self._record_result(use, item.call, executed)
            if executed.is_interrupted:
                return await self._close_calls(events, entries, remaining, waiting)
            await failpoints.hit("before_result_commit")
            outcome = await self._commit(
                [*unlogged, *events], entries, continues=continues and not remaining and not waiting
            )
            await failpoints.hit("after_result_commit")
            if not remaining and not waiting:
                return outcome
        if self.turn.interrupt.is_set():
            return await self._close_calls([], [], [], waiting)
        return turn_outcome_factories.awaiting([event_id for item in waiting for event_id in item.event_ids])

    async def _authorize_call(
        self, item: UnstartedCall, waiting: list[WaitingCall]
    ) -> tuple[Event, builtin_tools.ToolOutput | None] | None:
        """Decides whether a call may start. If it may, returns its logged event and None. If it is denied, returns the
        event and the error output, which are not logged yet. Returns None if the call waits for the client or a person.
        """
        call, call_input = item.call, item.call_input
        is_delegation = call_input is not None and self._subagents.is_subagent_call(call)
        if is_delegation and (reason := self._subagents.refusal_reason(call_input or {})) is not None:
            use = item.approval_request or self._use_event(call, call_input or {}, NOT_EVALUATED)
            return use, builtin_tools.failed_output(reason)
        decision = None if call_input is None else await self._decide(call, call_input)
        if decision is not None and decision.outcome is Gated.DENY:
            use = item.approval_request or self._use_event(call, call_input or {}, decision)
            return use, builtin_tools.unfinished_output(use, "denied", decision.refusal)
        if item.approval_request is not None:
            use = item.approval_request
            mark = approvals.started_mark(self.turn.turn_id, call.tool_call_id, use)
            events, entries = self._subagents.start(call, call_input or {}, use) if is_delegation else ([], [])
            await self._append(events, [mark, *entries])
            return use, None
        if call_input is not None and (custom_use := await self._request_result(call, call_input)) is not None:
            waiting.append(WaitingCall(call, (custom_use.id,)))
            return None
        use = self._use_event(call, call_input or {}, decision or NOT_EVALUATED)
        if ev.needs_approval(use):
            await self._append([use], [approvals.pending_mark(self.turn.turn_id, call.tool_call_id, use)])
            await failpoints.hit("after_ask")
            waiting.append(WaitingCall(call, (use.id,), use))
            return None
        events, entries = self._subagents.start(call, call_input or {}, use) if is_delegation else ([], [])
        await self._append([use, *events], entries)
        return use, None

    async def _request_result(self, call: ToolCallPart, call_input: JsonObject) -> Event | None:
        """Logs a call whose result comes from the client, a person or child sessions. None for other calls."""
        name, call_id = call.tool_name, call.tool_call_id
        is_question = self._is_question(call, call_input)
        if is_question or name in self._custom_tool_names:
            custom_use = (
                questions.question(call_input, call_id=call_id)
                if is_question
                else ev.custom_tool_use(name, call_input, call_id=call_id, context=self.turn.caller_context)
            )
            await self._append([custom_use])
            if is_question:
                await failpoints.hit("after_ask")
            return custom_use
        if name in self.turn.config.tools and await self._session_tools.parks(name, call_input):
            return await self._session_tools.start_waiting(call_input, call_id=call_id)
        return None

    async def _run_call(self, item: UnstartedCall, use: Event) -> ExecutedCall:
        """Runs a call that is logged as started."""
        call = item.call
        if (thread := self._thread_of(call)) is not None:
            executed = await self._subagents.run(thread)
        else:
            try:
                executed = ExecutedCall(await unless_interrupted(self.turn.interrupt, self._execute(item, use)))
            except Interrupted:
                return ExecutedCall(builtin_tools.failed_output(INTERRUPTED), is_interrupted=True)
        if executed.output is None or executed.is_interrupted:
            return executed
        output = await post_tool_hooks.add_hook_feedback(
            self.turn, call.tool_name, item.call_input or {}, executed.output, call.tool_call_id
        )
        return replace(executed, output=output)

    def _thread_of(self, call: ToolCallPart) -> OpenThread | None:
        return self.conversation.threads.open.get(call.tool_call_id)

    def _is_question(self, call: ToolCallPart, call_input: JsonObject) -> bool:
        """Whether the turn parks until a person answers. Otherwise the tool returns why it cannot ask."""
        return (
            call.tool_name == questions.ASK_USER
            and questions.ASK_USER in self.turn.config.tools
            and self.turn.config.mode != Mode.BACKGROUND
            and tool_inputs.is_valid(call.tool_name, call_input)
        )

    async def _decide(self, call: ToolCallPart, call_input: JsonObject) -> Decision | None:
        """The gate's decision, or None if the tool does not exist."""
        name = call.tool_name
        is_servers = self.servers is not None and self.servers.names.resolve(name) is not None
        is_known = name in self.turn.config.tools or name in self._custom_tool_names or is_servers
        if not is_known and not self._subagents.is_subagent_call(call):
            return None
        return await self.turn.gate.decide(name, call_input)

    @property
    def _custom_tool_names(self) -> set[str]:
        return {tool.name for tool in self.turn.config.custom_tools}

    async def _commit(
        self, events: Sequence[Event], entries: Sequence[Entry], *, continues: bool
    ) -> TurnOutcome | None:
        if continues:
            return await self._commit_and_continue(events, entries)
        await self._append(events, entries)
        return None

    async def _execute(self, item: UnstartedCall, use: Event) -> builtin_tools.ToolOutput:
        call, call_input = item.call, item.call_input
        if call_input is None:
            return builtin_tools.failed_output(invalid_arguments_message(call))
        output = await self._call_tool(call, call_input, use)
        if item.edited_input is None:
            return output
        return replace(output, content=[approvals.edited_input_notice(item.edited_input), *output.content])

    async def _call_tool(self, call: ToolCallPart, call_input: JsonObject, use: Event) -> builtin_tools.ToolOutput:
        if call.tool_name in session_tools.INPUTS and call.tool_name in self.turn.config.tools:
            return builtin_tools.session_output(await self._session_tools.run(call.tool_name, call_input, use.id))
        if self.servers is not None and self.servers.names.resolve(call.tool_name):
            self.turn.log.check()
            result = await self.servers.call_tool(call.tool_name, call_input, use.id)
            return builtin_tools.ToolOutput(result.content, is_error=result.is_error)
        output = await builtin_tools.execute_tool(
            self.turn.environment, self.turn.config.tools, call.tool_name, call_input, web=self.web
        )
        return await output_overflow.store_full_output(output, self.turn.log)

    async def _close_calls(
        self,
        events: Sequence[Event],
        entries: Sequence[Entry],
        unstarted: Sequence[UnstartedCall],
        waiting: Sequence[WaitingCall],
    ) -> TurnOutcome:
        """Closes every open call with a result, because models reject a conversation that has a call without one."""
        closing_events, closed = [*events], [*entries]
        items: list[UnstartedCall | WaitingCall] = [*unstarted, *waiting]
        started = [(item.call, item.thread) for item in items]
        for call, thread in started:
            if thread is not None:  # it is interrupted too, and closes its own calls
                ended = self._record_result(thread.use, call, await self._subagents.run(thread))
                closing_events, closed = [*closing_events, *ended[0]], [*closed, *ended[1]]
        open_calls = [(item.call, item.approval_request, _NOT_RUN) for item in unstarted if item.thread is None]
        open_calls += [
            (
                item.call,
                item.use,
                CLIENT_RESULT_INTERRUPTED if item.use is None else approvals.INTERRUPTED_WHILE_PENDING,
            )
            for item in waiting
            if item.thread is None
        ]
        for call, use, text in open_calls:
            output = builtin_tools.failed_output(text)
            if use is not None:
                closing_events += self._record_result(use, call, ExecutedCall(output))[0]
            closed.append(self._return_entry(call, output))
        await self._append(closing_events, conversation_entries.mark_interrupted(closed))
        return turn_outcome_factories.interrupted("")

    async def _claim_steering(self) -> list[SteerMessage]:
        """New messages for the running turn. A later attempt may receive the same message again, so those that already
        joined the conversation are filtered out.
        """
        new = {message.event_id: message for message in await self.turn.claim_steering()}
        unseen = [message for event_id, message in new.items() if event_id not in self._inputs]
        self._inputs |= new.keys()
        return unseen

    async def _steering_entries(self, steering: Sequence[SteerMessage]) -> list[Entry]:
        entries = []
        for message in steering:
            content = await self.turn.resolve_steering(message.content)
            entries.append(conversation_entries.prompt_entry(self.turn.turn_id, [*content], source=message.event_id))
        return entries

    async def _append(
        self, events: Sequence[Event] = (), entries: Sequence[Entry] = (), *, usage: Usage | None = None
    ) -> None:
        if events or entries or usage:
            await self.turn.log.append(events, entries=entries, usage=usage)
            self.conversation.add_entries(entries)

    def _use_event(self, call: ToolCallPart, call_input: JsonObject, decision: Decision) -> Event:
        ref = self.servers.names.resolve(call.tool_name) if self.servers is not None else None
        if ref is not None:
            return ev.mcp_tool_use(*ref, call_input, call_id=call.tool_call_id, decision=decision)
        return ev.tool_use(call.tool_name, call_input, call_id=call.tool_call_id, decision=decision)

    def _record_result(self, use: Event, call: ToolCallPart, executed: ExecutedCall) -> tuple[list[Event], list[Entry]]:
        output = executed.output or builtin_tools.failed_output(INTERRUPTED)
        command = output.command
        if executed.is_interrupted:
            command = command_details.of_unfinished_call(use, "interrupted", INTERRUPTED)
        event = ev.tool_result_for(
            use, output.content, is_error=output.is_error, call_id=call.tool_call_id, command=command
        )
        return [*executed.last_events, event], [*executed.last_entries, self._return_entry(call, output)]

    def _return_entry(self, call: ToolCallPart, output: builtin_tools.ToolOutput) -> Entry:
        blocks: list[Json] = [*output.content]
        return conversation_entries.tool_return_entry(self.turn.turn_id, call, blocks, is_error=output.is_error)

    def _end_event(self, reply: ResponseStream, *, is_error: bool) -> Event:
        assert self._request_start is not None
        return ev.model_request_end(self._request_start.id, reply.usage or Usage(), is_error=is_error)
