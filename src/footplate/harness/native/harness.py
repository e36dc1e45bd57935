"""The `native` harness: prepares a turn and runs the agent loop. Between turns, only a cache of parsed conversations is
kept.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from footplate.domain.ports.harness import McpAccess, TurnContext
from footplate.domain.sessions.events import Event
from footplate.domain.sessions.turns import TurnOutcome
from footplate.harness import mcp
from footplate.harness.native.agent_loop import AgentLoop
from footplate.harness.native.conversation_entries import Conversation
from footplate.harness.native.parsed_conversation_cache import ConversationCache
from footplate.harness.native.requests import model_resolver, request_settings
from footplate.harness.native.requests.encoded_message_cache import RequestTemplate
from footplate.harness.native.requests.model_resolver import ResolveModel
from footplate.harness.native.toolset import tool_inputs
from footplate.harness.native.web.web_tools import WebTools

if TYPE_CHECKING:
    from footplate.harness.mcp.tool_client import McpServers


class NativeHarness:
    opens_late: Final = True

    def __init__(self, models: ResolveModel, web: WebTools, mcp_access: McpAccess | None = None) -> None:
        """`mcp_access`: limits for connections to MCP servers."""
        self._models = models
        self._web = web
        self._mcp_access = mcp_access or McpAccess()
        self._conversations = ConversationCache()

    async def run(self, turn: TurnContext) -> TurnOutcome:
        conversation = self._conversations.claim(turn.session_id, turn.history)
        outcome = await self._run_loop(turn, conversation)
        # Not cached after an error: the next attempt rebuilds the conversation from the log.
        self._conversations.store(turn.session_id, conversation)
        return outcome

    async def _run_loop(self, turn: TurnContext, conversation: Conversation) -> TurnOutcome:
        """Runs the loop of the agent, or of one of its subagents."""
        servers = await mcp.create_servers(turn, self._mcp_access)
        if servers is None:
            return await self._create_loop(turn, conversation, None).run()
        try:
            server_events = await servers.list_tools(turn.interrupt)
            return await self._create_loop(turn, conversation, servers, server_events).run()
        finally:
            await servers.aclose()

    def _create_loop(
        self,
        turn: TurnContext,
        conversation: Conversation,
        servers: "McpServers | None",
        server_events: Sequence[Event] = (),
    ) -> AgentLoop:
        """`server_events`: errors of MCP servers that cannot be used."""
        model = self._models(turn.config.model, turn.endpoints)
        endpoint = model_resolver.find_endpoint(turn.config.model, turn.endpoints)
        tools = [tool_inputs.tool_definition(name) for name in turn.config.tools if name in tool_inputs.TOOL_INPUTS]
        if servers is not None:
            tools += [tool_inputs.mcp_tool_definition(tool) for tool in servers.tools.values()]
        if turn.config.subagents:
            tools.append(tool_inputs.subagent_tool_definition(turn.config.subagents))
        return AgentLoop(
            turn,
            conversation,
            template=RequestTemplate(
                model,
                request_settings.model_settings(model, turn.config.model_parameters, turn.session_id, endpoint),
                request_settings.request_parameters(turn.config, tools),
            ),
            web=self._web,
            servers=servers,
            server_events=server_events,
            run_loop=self._run_loop,
        )
