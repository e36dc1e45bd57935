"""Wire models of the explanation of a tool call: the decision that the gate would make, and why."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue, StringConstraints

from footplate.api.wire.request_base import Body, Id, Text
from footplate.api.wire.response_models import ResponseModel
from footplate.domain.json import JsonObject
from footplate.domain.policy.permissions import Decision
from footplate.gate.policy_explanation import CallExplanation, LayerRules


class ExplainRequest(Body):
    """A call that does not run. Its rules are those of a session, or of a new session with this agent and project."""

    tool: Annotated[Text, StringConstraints(min_length=1, max_length=200)]
    input: Annotated[dict[str, JsonValue], Field(description='The input of the call, such as `{"command": …}`.')]
    session_id: Id | None = None
    agent_id: Id | None = None
    project_id: Id | None = None


class ExplainedDecision(ResponseModel):
    outcome: Literal["allow", "ask", "deny"]
    reason: str
    rule: Annotated[str | None, Field(description="The rule that decided. Null: a default or a built-in check.")]
    layer: str | None


class ExplainedCommandPart(ExplainedDecision):
    kind: str
    text: str
    via: Annotated[list[str], Field(description="Programs that run other commands, such as `timeout`.")]
    runs: Annotated[list[str], Field(description="Commands that these programs run.")]


class EvaluatedLayer(ResponseModel):
    layer: str
    deny: list[str]
    ask: list[str]
    allow: list[str]


class PolicyExplanation(ExplainedDecision):
    type: Literal["policy_explanation"]
    tool: str
    hook: Annotated[str | None, Field(description="A hook that would also run. Its decision is not known.")]
    depends_on_links: Annotated[
        bool, Field(description="Whether symbolic links in the working tree can change the decision.")
    ]
    parts: Annotated[list[ExplainedCommandPart], Field(description="The parts of a shell command.")]
    layers: Annotated[list[EvaluatedLayer], Field(description="The evaluated rules, the highest layer first.")]


def serialize_explanation(tool: str, explanation: CallExplanation) -> JsonObject:
    result = explanation.result
    return {
        "type": "policy_explanation",
        "tool": tool,
        **_serialize_decision(result.decision),
        "hook": result.hook,
        "depends_on_links": result.depends_on_links,
        "parts": [
            {
                "kind": part.kind,
                "text": part.text,
                **_serialize_decision(part.decision),
                "via": [*part.wrappers],
                "runs": [*part.nested_commands],
            }
            for part in explanation.parts
        ],
        "layers": [_serialize_layer(each) for each in explanation.layers],
    }


def _serialize_layer(layer: LayerRules) -> JsonObject:
    rules: JsonObject = {outcome.value: [*texts] for outcome, texts in layer.rules.items()}
    return {"layer": layer.layer.label, **rules}


def _serialize_decision(decision: Decision) -> JsonObject:
    return {
        "outcome": decision.outcome.value,
        "reason": decision.reason,
        "rule": decision.rule,
        "layer": decision.layer.label if decision.layer is not None else None,
    }
