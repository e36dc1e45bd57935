"""A harness that repeats each message with the number of the turn. It calls no model.

It imports only Footplate's domain: a `TurnContext` in, a `TurnOutcome` out.
"""

from footplate.domain.ports.harness import Entry, Harness, HarnessServices, TurnContext
from footplate.domain.sessions import events
from footplate.domain.sessions.turns import TurnOutcome, TurnStatus

MESSAGE_KIND = "echo_demo.heard"


class EchoHarness:
    async def run(self, turn: TurnContext) -> TurnOutcome:
        text = "".join(str(block.get("text", "")) for block in turn.content)
        # Entries of an earlier attempt of this turn are in the history too, and a turn counts once.
        turns = {str(entry.body["turn"]) for entry in turn.history if entry.kind == MESSAGE_KIND} | {turn.turn_id}
        where = await turn.environment.run(["pwd"])
        inside = where.stdout.decode().strip() == turn.environment.root
        message = f"{len(turns)}: {text}" if inside else "Where am I?"
        preview = turn.log.preview(events.AGENT_MESSAGE)
        preview.write(message)
        await turn.log.append(
            [events.message(message, event_id=preview.event_id)], entries=[Entry(MESSAGE_KIND, {"turn": turn.turn_id})]
        )
        return TurnOutcome(status=TurnStatus.COMPLETED, text=message)


def create(_services: HarnessServices) -> Harness:
    return EchoHarness()
