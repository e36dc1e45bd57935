"""A harness that repeats each message with the number of the turn. It calls no model.

It imports only Footplate's domain: a `TurnContext` in, an `Outcome` out.
"""

from footplate.domain import events
from footplate.domain.ports import Entry, Harness, HarnessServices, TurnContext
from footplate.domain.turns import Outcome, TurnStatus

HEARD = "echo_demo.heard"


class Echo:
    async def run(self, turn: TurnContext) -> Outcome:
        heard = "".join(str(block.get("text", "")) for block in turn.content)
        # Entries of an earlier attempt of this turn are in the history too, and a turn counts once.
        turns = {str(entry.body["turn"]) for entry in turn.history if entry.kind == HEARD} | {turn.turn_id}
        where = await turn.environment.run(["pwd"])
        inside = where.stdout.decode().strip() == turn.environment.root
        said = f"{len(turns)}: {heard}" if inside else "Where am I?"
        preview = turn.log.preview(events.AGENT_MESSAGE)
        preview.write(said)
        await turn.log.append(
            [events.message(said, event_id=preview.event_id)], entries=[Entry(HEARD, {"turn": turn.turn_id})]
        )
        return Outcome(status=TurnStatus.COMPLETED, text=said)


def create(_services: HarnessServices) -> Harness:
    return Echo()
