"""Short helpers to build policies and path contexts, and to decide about a command."""

from typing import Final

from footplate.domain.policy.permissions import Layer, PermissionOutcome
from footplate.gate.evaluation.shell_command_decision import explain_command
from footplate.gate.rules.layered_policy import Policy
from footplate.gate.rules.path_context import PathContext

CONTEXT: Final = PathContext(root="/work/tree", home="/home/dev")


def policy(*allow: str, ask: tuple[str, ...] = (), deny: tuple[str, ...] = (), layer: Layer = Layer.PROJECT) -> Policy:
    return Policy.parse(
        {layer: {PermissionOutcome.ALLOW: allow, PermissionOutcome.ASK: ask, PermissionOutcome.DENY: deny}}
    )


def decide_outcome(rules: Policy, command: str, context: PathContext = CONTEXT) -> str:
    return explain_command(rules, command, context).decision.outcome.value
