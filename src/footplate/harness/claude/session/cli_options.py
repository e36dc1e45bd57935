"""Builds the arguments, environment variables and files of the Claude Code CLI from the configuration of a turn.

The CLI receives no environment variables, settings files or MCP servers that are configured on the host.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, cast

import claude_agent_sdk as sdk
from claude_agent_sdk._internal.sessions import _sanitize_path
from claude_agent_sdk._internal.transport.subprocess_cli import SubprocessCLITransport
from claude_agent_sdk.types import HookEvent

from footplate.domain.agents.agents_and_config import ResolvedConfig, Subagent
from footplate.domain.agents.model_connections import ANTHROPIC, ModelName, parse_model_name
from footplate.domain.errors import ModelRefused
from footplate.domain.ports.harness import Endpoint
from footplate.domain.sessions import threads
from footplate.domain.sessions.questions import ASK_USER
from footplate.harness.claude.session import cli_path
from footplate.harness.claude.transcripts import tool_names

HOOK_SECONDS: Final = 3600.0
"""Timeout of a hook. A call that waits longer for permission is denied."""
_MAX_ARGUMENT_BYTES: Final = 100_000
"""Maximum bytes of one argument. The kernel's limit is 128 KiB."""
_CONFIG_DIRECTORY: Final = "claude"
_SYSTEM_FILE: Final = "system.md"
_TURN_FILE: Final = "turn"
_SHELL_FILE: Final = "shell.sh"
_SUPPORTED_PARAMETERS: Final = frozenset({"max_tokens", "thinking"})

_VARIABLES: Final = {
    "CLAUDE_CODE_ENTRYPOINT": "sdk-py",
    "CLAUDE_AGENT_SDK_VERSION": sdk.__version__,
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    # The engine retries and reports it in the session's status.
    "CLAUDE_CODE_MAX_RETRIES": "0",
    "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1",
    # A command that continues after its call would have no result in the log.
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
    "BASH_MAX_TIMEOUT_MS": "3600000",
    # The repository's instructions are passed from its base commit. Files in the tree may be written by the agent.
    "CLAUDE_CODE_DISABLE_CLAUDE_MDS": "1",
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
    # The worker limits the duration of MCP calls, and the model sees all MCP tools.
    "MCP_TOOL_TIMEOUT": "86400000",
    "ENABLE_TOOL_SEARCH": "false",
    # The maximum length of a custom tool's description.
    "CLAUDE_CODE_MAX_MCP_DESCRIPTION_LENGTH": "10000",
    # The environment is the security boundary, so the CLI needs none of its own.
    "IS_SANDBOX": "1",
}
_SUBAGENT_VARIABLES: Final = {
    # Only the subagents that the agent's configuration names.
    "CLAUDE_AGENT_SDK_DISABLE_BUILTIN_AGENTS": "1",
    "CLAUDE_CODE_FORK_SUBAGENT": "0",
    "CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH": "1",
}


def check_config(config: ResolvedConfig) -> None:
    """Raises `ModelRefused` for settings that this harness does not support."""
    unknown = sorted(set(config.model_parameters) - _SUPPORTED_PARAMETERS)
    if unknown:
        known = ", ".join(sorted(_SUPPORTED_PARAMETERS))
        raise ModelRefused(
            f"Claude Code does not support these model parameters: {', '.join(unknown)}.",
            help_text=f"Supported parameters: {known}.",
        )
    names = [_parse_model(model) for model in (config.model, *(agent.model for agent in config.subagents))]
    other = next((name.connection for name in names if name.connection != names[0].connection), None)
    if other is not None:
        raise ModelRefused(
            f"Claude Code uses one connection, but a subagent has a model of the connection {other!r}.",
            help_text=f"Give all subagents models of the connection {names[0].connection!r}.",
        )


def model_name(model: str) -> str:
    return _parse_model(model).model


def _parse_model(model: str) -> ModelName:
    parsed = parse_model_name(model)
    if parsed is None or parsed.provider not in {None, ANTHROPIC}:
        raise _not_anthropic(model)
    return parsed


def find_endpoint(model: str, endpoints: Mapping[str, Endpoint]) -> Endpoint:
    connection = _parse_model(model).connection
    endpoint = endpoints.get(connection)
    if endpoint is None:
        raise ModelRefused(
            f"The model {model!r} needs the connection {connection!r}, which this organisation does not have on this "
            "worker.",
            help_text="Set FOOTPLATE_ANTHROPIC_API_KEY, or ask the operator to configure the connection.",
        )
    if (endpoint.provider or connection) != ANTHROPIC:
        raise _not_anthropic(model)
    return endpoint


def _not_anthropic(model: str) -> ModelRefused:
    return ModelRefused(
        f"Claude Code runs only Anthropic's models, not {model!r}.",
        help_text="Use a model such as claude-sonnet-5, or the harness 'native', which supports other providers.",
    )


def config_directory(scratch: str) -> str:
    return f"{scratch}/{_CONFIG_DIRECTORY}"


def transcript_path(scratch: str, root: str, session_id: str, subpath: str = "") -> str:
    """The path where the CLI reads the conversation that it resumes."""
    project = f"{config_directory(scratch)}/projects/{_sanitize_path(root)}"
    return f"{project}/{session_id}/{subpath}.jsonl" if subpath else f"{project}/{session_id}.jsonl"


def system_prompt_path(config: ResolvedConfig, scratch: str) -> str | None:
    """The path for a system prompt that is too long for an argument. None if it fits."""
    return f"{scratch}/{_SYSTEM_FILE}" if len(config.system.encode()) > _MAX_ARGUMENT_BYTES else None


def turn_id_path(scratch: str) -> str:
    """The path of the file with the current turn's id. A file is needed because a CLI that serves several turns keeps
    the environment variables of the first.
    """
    return f"{scratch}/{_TURN_FILE}"


def shell_startup_file(scratch: str) -> tuple[str, bytes]:
    """The path and content of the start-up file of the CLI's shells. The CLI reads it once."""
    return f"{scratch}/{_SHELL_FILE}", f'export FOOTPLATE_TURN_ID="$(cat {turn_id_path(scratch)})"\n'.encode()


def environment_variables(
    config: ResolvedConfig, endpoint: Endpoint, *, scratch: str, root: str, resumes_turn: bool
) -> dict[str, str]:
    """The CLI's environment variables. `resumes_turn`: continue an unfinished turn without a new prompt."""
    limit = config.model_parameters.get("max_tokens")
    return {
        **_VARIABLES,
        "ANTHROPIC_BASE_URL": endpoint.base_url or "",
        "ANTHROPIC_API_KEY": endpoint.api_key,
        "CLAUDE_CONFIG_DIR": config_directory(scratch),
        "CLAUDE_CODE_TMPDIR": scratch,
        "PWD": root,
        "CLAUDE_ENV_FILE": shell_startup_file(scratch)[0],
        **({"CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(limit)} if isinstance(limit, int) else {}),
        **({"CLAUDE_CODE_RESUME_INTERRUPTED_TURN": "1"} if resumes_turn else {}),
        **(_SUBAGENT_VARIABLES if config.subagents else {}),
    }


def build_options(
    config: ResolvedConfig,
    *,
    scratch: str,
    session_id: str,
    resume: bool,
    max_turns: int,
    before_call: sdk.HookCallback,
    after_calls: sdk.HookCallback,
    other_hooks: Mapping[str, sdk.HookCallback],
    store: sdk.SessionStore,
    env: Mapping[str, str],
    mcp_servers: Mapping[str, sdk.McpSdkServerConfig],
) -> sdk.ClaudeAgentOptions:
    """The SDK's options. `resume`: a transcript of this session exists. `before_call`: the hook before a call.
    `after_calls`: the hook after all calls of a response. `other_hooks`: other hooks, by event name.
    """
    other_matchers = {
        event: [sdk.HookMatcher(hooks=[callback], timeout=HOOK_SECONDS)] for event, callback in other_hooks.items()
    }
    hooks = {
        "PreToolUse": [_blocking_hook(before_call)],
        "PostToolBatch": [_blocking_hook(after_calls)],
        **other_matchers,
    }
    built = sdk.ClaudeAgentOptions(
        cli_path=cli_path.find_cli(),
        model=model_name(config.model),
        system_prompt={"type": "preset", "preset": "claude_code", "append": config.system, "snapshot": False},
        tools=[*tool_names.cli_tool_names(config.tools), *([threads.SUBAGENT_TOOL] if config.subagents else [])],
        agents={agent.name: _agent_definition(agent) for agent in config.subagents} or None,
        permission_mode="bypassPermissions",
        # Without a way to ask, the CLI does not offer its question tool. The hook before a call handles the question.
        permission_prompt_tool_name="stdio" if ASK_USER in config.tools else None,
        max_turns=max_turns,
        setting_sources=[],
        mcp_servers={**mcp_servers},
        strict_mcp_config=True,
        include_partial_messages=True,
        verbatim_prompts=True,
        session_store=store,
        session_store_flush="eager",
        hooks=cast("dict[HookEvent, list[sdk.HookMatcher]]", hooks),  # the SDK's type lacks some of the CLI's events
        env=dict(env),
        thinking=_thinking_config(config),
    )
    if (path := system_prompt_path(config, scratch)) is not None:
        built = replace(
            built,
            system_prompt={"type": "preset", "preset": "claude_code", "snapshot": False},
            extra_args={"append-system-prompt-file": path},
        )
    return replace(built, resume=session_id) if resume else replace(built, session_id=session_id)


def _blocking_hook(callback: sdk.HookCallback) -> sdk.HookMatcher:
    return sdk.HookMatcher(hooks=[callback], timeout=HOOK_SECONDS, on_failure="block")


def _agent_definition(agent: Subagent) -> sdk.AgentDefinition:
    """The subagent's own prompt, model and tools. It does not inherit those of the agent that starts it."""
    return sdk.AgentDefinition(
        description=agent.description or agent.name,
        prompt=agent.system or f"You are {agent.name}.",
        tools=tool_names.cli_tool_names(agent.tools),
        model=model_name(agent.model),
        maxTurns=agent.max_iterations,
    )


def build_command(sdk_options: sdk.ClaudeAgentOptions) -> Sequence[str]:
    """The CLI's command line, as the SDK builds it."""
    return SubprocessCLITransport(prompt="", options=sdk_options)._build_command()  # noqa: SLF001 - there is no public API


def _thinking_config(config: ResolvedConfig) -> sdk.ThinkingConfig | None:
    setting = config.model_parameters.get("thinking")
    if isinstance(setting, dict) and setting.get("type") == "enabled" and isinstance(setting.get("budget_tokens"), int):
        return {"type": "enabled", "budget_tokens": int(str(setting["budget_tokens"]))}
    if isinstance(setting, dict) and setting.get("type") == "adaptive":
        return {"type": "adaptive"}
    if setting is False or (isinstance(setting, dict) and setting.get("type") == "disabled"):
        return {"type": "disabled"}
    return None
