"""Short helpers to build policies and path contexts, and to decide about a command."""

from typing import Final

from footplate.domain.policy.permissions import Layer, PermissionOutcome
from footplate.gate.evaluation.commands import explain_command
from footplate.gate.rules.path_context import PathContext
from footplate.gate.rules.policy import Policy

CONTEXT: Final = PathContext(root="/work/tree", home="/home/dev")


def policy(*allow: str, ask: tuple[str, ...] = (), deny: tuple[str, ...] = (), layer: Layer = Layer.PROJECT) -> Policy:
    return Policy.parse(
        {layer: {PermissionOutcome.ALLOW: allow, PermissionOutcome.ASK: ask, PermissionOutcome.DENY: deny}}
    )


def decide_outcome(rules: Policy, command: str, context: PathContext = CONTEXT) -> str:
    return explain_command(rules, command, context).decision.outcome.value
