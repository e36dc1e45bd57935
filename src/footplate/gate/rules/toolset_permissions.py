"""Converts the permission policies of an agent's toolsets (`always_allow`, `always_ask`) into permission rules of the
agent.
"""

from collections.abc import Mapping
from typing import Final

from footplate.domain.agents.agents_and_config import ALWAYS_ALLOW, ALWAYS_ASK
from footplate.domain.policy.permissions import Layer, PermissionOutcome
from footplate.gate.rules.layered_policy import LayeredRule
from footplate.gate.rules.rule_parser import parse_rule

_OUTCOMES: Final = {ALWAYS_ALLOW: PermissionOutcome.ALLOW, ALWAYS_ASK: PermissionOutcome.ASK}


def convert_toolset_policies(policies: Mapping[str, str]) -> tuple[LayeredRule, ...]:
    """Convert the policies of a turn's configuration. An unknown policy requires approval."""
    return tuple(
        LayeredRule(Layer.AGENT, parse_rule(text, _OUTCOMES.get(policy, PermissionOutcome.ASK)))
        for text, policy in policies.items()
    )
