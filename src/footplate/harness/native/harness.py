"""The `native` harness itself: prepares a turn and hands it to the loop. Holds nothing between turns."""

from footplate.domain.ports import TurnContext
from footplate.domain.turns import Outcome
from footplate.harness.native import settings, tool_inputs
from footplate.harness.native.loop import Loop
from footplate.harness.native.mapping import Conversation
from footplate.harness.native.models import Resolver


class NativeHarness:
    def __init__(self, models: Resolver) -> None:
        self._models = models

    async def run(self, turn: TurnContext) -> Outcome:
        model = self._models(turn.config.model)
        tools = [tool_inputs.definition(name) for name in turn.config.tools if name in tool_inputs.INPUTS]
        loop = Loop(
            turn,
            Conversation(turn.history),
            model=model,
            settings=settings.model_settings(model, turn.config.model_parameters, turn.session_id),
            parameters=settings.request_parameters(turn.config, tools),
        )
        return await loop.run()
