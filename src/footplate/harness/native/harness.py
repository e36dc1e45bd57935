"""The `native` harness itself: prepares a turn, hands it to the loop. What it keeps between turns only saves time."""

from footplate.domain.ports import TurnContext
from footplate.domain.turns import Outcome
from footplate.harness.native import settings, tool_inputs
from footplate.harness.native.conversations import Conversations
from footplate.harness.native.loop import Loop
from footplate.harness.native.models import Resolver
from footplate.harness.native.web.access import Web


class NativeHarness:
    def __init__(self, models: Resolver, web: Web) -> None:
        self._models = models
        self._web = web
        self._conversations = Conversations()

    async def run(self, turn: TurnContext) -> Outcome:
        model = self._models(turn.config.model)
        tools = [tool_inputs.definition(name) for name in turn.config.tools if name in tool_inputs.INPUTS]
        conversation = self._conversations.take(turn.session_id, turn.history)
        loop = Loop(
            turn,
            conversation,
            model=model,
            settings=settings.model_settings(
                model, turn.config.model_parameters, turn.session_id, turn.endpoints.get(model.system)
            ),
            parameters=settings.request_parameters(turn.config, tools),
            web=self._web,
        )
        outcome = await loop.run()
        # Not after an error: the next try builds it anew from what the log has.
        self._conversations.keep(turn.session_id, conversation)
        return outcome
