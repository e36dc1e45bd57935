"""Converts the permission policies of an agent's toolsets, `always_allow` and `always_ask`, into rules of the agent
layer.
"""

from collections.abc import Mapping
from typing import Final

from footplate.domain.agents import ALWAYS_ALLOW, ALWAYS_ASK
from footplate.domain.permissions import Layer, Outcome
from footplate.gate.policy import Placed
from footplate.gate.rules import parse_rule

_OUTCOMES: Final = {ALWAYS_ALLOW: Outcome.ALLOW, ALWAYS_ASK: Outcome.ASK}


def rules_of(policies: Mapping[str, str]) -> tuple[Placed, ...]:
    """Convert the policies of a turn's configuration. An unknown policy requires approval."""
    return tuple(
        Placed(Layer.AGENT, parse_rule(text, _OUTCOMES.get(policy, Outcome.ASK))) for text, policy in policies.items()
    )
