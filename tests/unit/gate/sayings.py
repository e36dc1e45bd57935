"""Short helpers to build policies and path contexts, and to decide about a command."""

from typing import Final

from footplate.domain.permissions import Layer, Outcome
from footplate.gate.commands import judge
from footplate.gate.places import Place
from footplate.gate.policy import Policy

PLACE: Final = Place(root="/work/tree", home="/home/dev")


def policy(*allow: str, ask: tuple[str, ...] = (), deny: tuple[str, ...] = (), layer: Layer = Layer.PROJECT) -> Policy:
    return Policy.parse({layer: {Outcome.ALLOW: allow, Outcome.ASK: ask, Outcome.DENY: deny}})


def says(rules: Policy, command: str, place: Place = PLACE) -> str:
    return judge(rules, command, place).decision.outcome.value
