"""The `native` harness: prepares a turn and runs the agent loop. State between turns is only a cache."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from footplate.domain.errors import Permanent
from footplate.domain.events import Event
from footplate.domain.ports import McpAccess, TurnContext
from footplate.domain.turns import Outcome
from footplate.harness import mcp
from footplate.harness.native import settings, tool_inputs
from footplate.harness.native.conversations import Conversations
from footplate.harness.native.loop import Loop
from footplate.harness.native.models import Resolver
from footplate.harness.native.prefixes import RequestTemplate
from footplate.harness.native.web.access import Web

if TYPE_CHECKING:
    from footplate.harness.mcp.servers import Servers


class NativeHarness:
    opens_late: Final = True

    def __init__(self, models: Resolver, web: Web, mcp_access: McpAccess | None = None) -> None:
        """`mcp_access`: limits for connections to MCP servers."""
        self._models = models
        self._web = web
        self._access = mcp_access or McpAccess()
        self._conversations = Conversations()

    async def run(self, turn: TurnContext) -> Outcome:
        if turn.config.subagents:
            raise Permanent(
                "The harness 'native' does not support subagents, but this agent has `multiagent`.",
                help_text="Use the harness 'claude' for this agent, or remove `multiagent`.",
            )
        servers = await mcp.servers_of(turn.config, self._access)
        if servers is None:
            return await self._run(turn, None)
        try:
            return await self._run(turn, servers, await servers.open(turn.interrupt))
        finally:
            await servers.aclose()

    async def _run(self, turn: TurnContext, servers: "Servers | None", server_events: Sequence[Event] = ()) -> Outcome:
        """`server_events`: errors of MCP servers that cannot be used."""
        model = self._models(turn.config.model)
        tools = [tool_inputs.definition(name) for name in turn.config.tools if name in tool_inputs.INPUTS]
        if servers is not None:
            tools += [tool_inputs.definition_of(tool) for tool in servers.tools.values()]
        conversation = self._conversations.take(turn.session_id, turn.history)
        loop = Loop(
            turn,
            conversation,
            template=RequestTemplate(
                model,
                settings.model_settings(
                    model, turn.config.model_parameters, turn.session_id, turn.endpoints.get(model.system)
                ),
                settings.request_parameters(turn.config, tools),
            ),
            web=self._web,
            servers=servers,
            told=server_events,
        )
        outcome = await loop.run()
        # Not cached after an error: the next attempt rebuilds the conversation from the log.
        self._conversations.keep(turn.session_id, conversation)
        return outcome
