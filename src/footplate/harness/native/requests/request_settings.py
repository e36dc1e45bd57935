"""Builds the settings of a model request from the configuration of a turn."""

from collections.abc import Mapping
from typing import Any, Final, cast

from pydantic_ai.messages import InstructionPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from footplate.domain.agents.agents_and_config import ResolvedConfig
from footplate.domain.errors import ModelRefused
from footplate.domain.json import Json
from footplate.domain.ports.harness import Endpoint
from footplate.harness.native.requests.model_resolver import AnyModel

SESSION_HEADER: Final = "x-footplate-session"
_MAX_TOKENS: Final = 32_000
_TOKENS_AFTER_THINKING: Final = 4_096
_KNOWN_PARAMETERS: Final = frozenset({"temperature", "top_p", "top_k", "max_tokens", "stop_sequences", "seed"})
_THINKING: Final = "thinking"


def model_settings(
    model: AnyModel, parameters: Mapping[str, Json], session_id: str, endpoint: Endpoint | None = None
) -> ModelSettings:
    """`endpoint`: the turn's own endpoint. Its key replaces the client's key in the `Authorization` header."""
    unknown = sorted(set(parameters) - _KNOWN_PARAMETERS - {_THINKING})
    if unknown:
        known = ", ".join(sorted([*_KNOWN_PARAMETERS, _THINKING]))
        raise ModelRefused(f"Unknown model parameters: {', '.join(unknown)}.", help_text=f"Known parameters: {known}.")
    settings: dict[str, Any] = {key: value for key, value in parameters.items() if key != _THINKING}
    settings["extra_headers"] = {SESSION_HEADER: session_id}
    if endpoint is not None:
        settings["extra_headers"]["Authorization"] = f"Bearer {endpoint.api_key}"
    thinking = parameters.get(_THINKING)
    if model.system == "anthropic":
        if "max_tokens" not in settings and (limit := _max_tokens(model, thinking)):
            settings["max_tokens"] = limit
        # Every request repeats the conversation, so the provider's cache saves money from the second request on.
        settings["anthropic_cache_instructions"] = True
        settings["anthropic_cache_tool_definitions"] = True
        settings["anthropic_cache_messages"] = True
    if isinstance(thinking, dict) and model.system == "anthropic":
        settings["anthropic_thinking"] = thinking
    elif isinstance(thinking, dict):
        settings[_THINKING] = thinking.get("type") != "disabled"
    elif thinking is not None:
        settings[_THINKING] = thinking
    if settings.get(_THINKING) and model.system == "openai" and model.profile.get("openai_supports_reasoning"):
        # Without a summary these models send no thinking text, and the session shows nothing while they think.
        settings["openai_reasoning_summary"] = "auto"
    return cast("ModelSettings", settings)


def request_parameters(config: ResolvedConfig, tools: list[ToolDefinition]) -> ModelRequestParameters:
    custom = [
        ToolDefinition(
            name=tool.name,
            description=tool.description,
            parameters_json_schema=tool.input_schema or {"type": "object", "properties": {}},
        )
        for tool in config.custom_tools
    ]
    instructions = [InstructionPart(content=config.system)] if config.system else None
    return ModelRequestParameters(function_tools=[*tools, *custom], instruction_parts=instructions)


def _max_tokens(model: AnyModel, thinking: Json) -> int | None:
    """A limit that allows a long file and exceeds the thinking budget. None: the library chooses, because it knows the
    lower limits of older models.
    """
    ceiling = model.profile.get("anthropic_max_output_tokens")
    if not isinstance(ceiling, int) or model.profile.get("anthropic_rejects_max_tokens_beyond_context_window"):
        return None
    limit = min(_MAX_TOKENS, ceiling)
    budget = thinking.get("budget_tokens") if isinstance(thinking, dict) else None
    return max(limit, budget + _TOKENS_AFTER_THINKING) if isinstance(budget, int) else limit
