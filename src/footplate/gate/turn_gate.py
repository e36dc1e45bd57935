"""Decides whether the tool calls of one turn may run. It loads the current rules, resolves symbolic links in the
environment, evaluates the rules and runs hooks.

Rules are reloaded while a turn runs, so a new rule also applies to running turns. If a rule cannot be parsed, every
call is denied until the rule is fixed.
"""

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from footplate.domain.agents import mcp_servers
from footplate.domain.agents.agents_and_config import ResolvedConfig, Subagent
from footplate.domain.json import JsonObject
from footplate.domain.policy.hooks import FAIL_CLOSED, HookAccess, HookEvent, HookFeedback
from footplate.domain.policy.permissions import TOOL_NAMES, Decision, Layer, PermissionOutcome, read_rules
from footplate.domain.ports.engine import Claim, HookRecords, RuleStore
from footplate.domain.ports.harness import Environment, Gate
from footplate.gate.errors import InvalidRule
from footplate.gate.evaluation import search_decision
from footplate.gate.evaluation.tool_call_decision import decide_tool_call
from footplate.gate.hooks import hook_config
from footplate.gate.hooks.hook_config import Hook
from footplate.gate.hooks.hook_runner import HookRunner, HookTurn, NullHookRecords
from footplate.gate.rules.layered_policy import LayeredRule, Policy
from footplate.gate.rules.path_context import FileTarget, PathContext
from footplate.gate.rules.rule_parser import BASH, parse_rule
from footplate.gate.rules.toolset_permissions import convert_toolset_policies

RELOAD_SECONDS: Final = 1.0
"""Seconds for which loaded rules are used before they are loaded again."""
_MAX_LINK_ROUNDS: Final = 8
_LARGE_RULE_CHARACTERS: Final = 10_000
"""Characters. Larger rule sets are parsed in a thread so that they do not block other turns."""
_MANY_RULES: Final = 200
"""Rules. With more rules than this, calls are evaluated in a thread."""
_MAX_CACHED: Final = 32
NO_RULES_REASON: Final = "No rules are defined, so this call is restricted only by its environment."
_UNKNOWN_DIRECTORY: Final = "The directory in which the command would run cannot be determined."


class TurnGateFactory:
    """Creates the gates of a worker's turns, which share parsed rules and the hook runner."""

    def __init__(self, rules: RuleStore, records: HookRecords | None = None, access: HookAccess | None = None) -> None:
        self._rules = rules
        self._rule_cache = _RuleCache()
        self._hook_runner = HookRunner(access or HookAccess(), records or NullHookRecords())

    def create_gate(self, claim: Claim, environment: Environment) -> Gate:
        turn = HookTurn(claim.organisation, claim.session_id, claim.turn_id, environment, claim.context, claim.author)
        return TurnGate(self._rules, turn, claim.config, self._hook_runner, self._rule_cache)


@dataclass(frozen=True, slots=True)
class EffectiveRules:
    """The parsed rules and hooks that apply to a session, or to one of its subagents."""

    policy: Policy
    has_written_rules: bool
    """Whether any layer has rules. The permission policies of toolsets do not count."""
    hooks: Mapping[HookEvent, Sequence[Hook]] = field(default_factory=dict)

    def apply_default(self, decision: Decision, *, from_mcp_server: bool) -> Decision:
        """Apply the default for sessions without rules: calls are allowed instead of requiring approval. Calls of the
        agent's MCP servers (`server_s`) are exempt.
        """
        by_default = decision.outcome is PermissionOutcome.ASK and decision.rule is None and not self.has_written_rules
        if not from_mcp_server and (by_default or not self.policy.rules):
            return Decision(PermissionOutcome.ALLOW, NO_RULES_REASON)
        return decision


class TurnGate:
    def __init__(
        self,
        rules: RuleStore,
        turn: HookTurn,
        config: ResolvedConfig,
        hook_runner: HookRunner,
        rule_cache: "_RuleCache | None" = None,
    ) -> None:
        self._rules = rules
        self._rule_cache = rule_cache or _RuleCache()
        self._turn = turn
        self._config = config
        self._environment = turn.environment
        self._hook_runner = hook_runner
        subagent_servers = [server for each in config.subagents for server in each.mcp_servers]
        self._mcp_names = mcp_servers.ToolNames([*config.mcp_servers, *subagent_servers])
        self._layers: Sequence[tuple[Layer, JsonObject]] | None = None
        self._parsed: dict[str | None, EffectiveRules] = {}
        self._loaded_at = 0.0

    async def decide(
        self, tool: str, given: JsonObject, *, directory: str | None = None, agent: str | None = None
    ) -> Decision:
        try:
            rules = await self._load_rules(agent)
        except InvalidRule as error:
            return Decision(PermissionOutcome.DENY, f"All calls are denied because a rule is invalid. {error.message}")
        # MCP servers that a trusted repository configures are ordinary programs in the environment: the default for the
        # agent's own servers, and those of its subagents, does not apply to them.
        from_mcp_server = self._mcp_names.resolve(tool) is not None
        decision = await self._decide_by_rules(rules, tool, given, directory, from_mcp_server=from_mcp_server)
        event_hooks = rules.hooks.get(HookEvent.BEFORE_TOOL, ())
        if decision.outcome is PermissionOutcome.DENY or not event_hooks:
            return decision
        return await self._combine_with_hooks(event_hooks, decision, tool, given, directory)

    async def run_hooks(
        self, event: HookEvent, fields: JsonObject, *, about: str = "", agent: str | None = None
    ) -> HookFeedback:
        try:
            event_hooks = (await self._load_rules(agent)).hooks.get(event, ())
        except InvalidRule as error:
            return HookFeedback(
                f"Prompts are blocked because a rule is invalid. {error.message}" if event in FAIL_CLOSED else None
            )
        name = TOOL_NAMES.get(about, about)
        tool: JsonObject = {"tool_name": name} if event is HookEvent.AFTER_TOOL else {}
        return await self._hook_runner.run_hooks(self._turn, event_hooks, {**tool, **fields}, about=name)

    async def _combine_with_hooks(
        self, event_hooks: Sequence[Hook], decision: Decision, tool: str, tool_input: JsonObject, directory: str | None
    ) -> Decision:
        """Combine the rules' decision with the hooks'. A hook's denial is final, and its `ask` requires approval even
        if a rule allows the call. Its `allow` only replaces a default, never the decision of a rule.
        """
        hook_decision = await self._hook_runner.decide_call(
            self._turn, event_hooks, TOOL_NAMES.get(tool, tool), tool_input, directory=directory
        )
        if hook_decision is None or (hook_decision.outcome is PermissionOutcome.ALLOW and decision.rule is not None):
            return decision
        stricter = hook_decision.outcome is PermissionOutcome.DENY or decision.outcome is PermissionOutcome.ALLOW
        return hook_decision if stricter or hook_decision.outcome is PermissionOutcome.ALLOW else decision

    async def _decide_by_rules(
        self, rules: EffectiveRules, tool: str, tool_input: JsonObject, directory: str | None, *, from_mcp_server: bool
    ) -> Decision:
        if not rules.policy.rules and not from_mcp_server:
            return Decision(PermissionOutcome.ALLOW, NO_RULES_REASON)
        return rules.apply_default(
            await self._evaluate(rules.policy, tool, tool_input, directory), from_mcp_server=from_mcp_server
        )

    async def _load_rules(self, agent: str | None) -> EffectiveRules:
        now = time.monotonic()
        if self._layers is None or now - self._loaded_at >= RELOAD_SECONDS:
            named_directory = self._turn.context.get("directory")
            layers = await self._rules.rules(
                self._turn.organisation,
                self._turn.session_id,
                directory=named_directory if isinstance(named_directory, str) else None,
            )
            if layers != self._layers:
                self._layers = layers
                self._parsed = {}
            self._loaded_at = now
        else:
            layers = self._layers
        parsed = self._parsed
        if agent not in parsed:
            parsed[agent] = await self._rule_cache.parse(layers, self._config, agent)
        return parsed[agent]

    async def _evaluate(self, policy: Policy, tool: str, tool_input: JsonObject, directory: str | None) -> Decision:
        """Evaluate the rules with links resolved inside the environment. The evaluation itself shows which paths it
        needs, so it is repeated until all of them are resolved.
        """
        environment, links = self._environment, _EnvironmentLinks()
        await environment.ensure_open()
        is_command = TOOL_NAMES.get(tool, tool) == BASH
        if is_command and directory is None:
            directory = await environment.shell_directory()
            if directory is None:
                without_directory = decide_tool_call(
                    policy, tool, tool_input, PathContext(root=environment.root, home=environment.home, links=links)
                )
                return (
                    without_directory
                    if without_directory.outcome is PermissionOutcome.DENY
                    else Decision(PermissionOutcome.ASK, _UNKNOWN_DIRECTORY)
                )
        directory = directory or environment.working_directory
        context = PathContext(root=environment.root, home=environment.home, links=links)
        decision = await _decide_off_loop(policy, tool, tool_input, context, directory)
        for _ in range(_MAX_LINK_ROUNDS):
            if not links.unresolved:
                break
            paths = sorted(links.unresolved)
            links.add_resolved(dict(zip(paths, await environment.resolve_paths(paths), strict=True)))
            decision = await _decide_off_loop(policy, tool, tool_input, context, directory)
        if decision.outcome is PermissionOutcome.ALLOW:
            return await self._decide_search(policy, tool, tool_input, context, directory) or decision
        return decision

    async def _decide_search(
        self, policy: Policy, tool: str, tool_input: JsonObject, context: PathContext, directory: str | None
    ) -> Decision | None:
        """Return the decision of a rule that forbids a file which a search would show, or None."""
        search = search_decision.parse_search(policy, tool, tool_input, context, directory)
        if search is None:
            return None
        try:
            (real_path,) = await self._environment.resolve_paths([search.directory.path])
            files = await self._environment.list_files(real_path or search.directory.path)
        except (FileNotFoundError, NotADirectoryError):
            return None  # a single file has been decided already, and a missing directory shows nothing
        except OSError as error:
            return Decision(
                PermissionOutcome.ASK,
                f"The gate cannot determine which files this search would read: {error.strerror}.",
            )
        resolved_search = replace(search, directory=FileTarget(search.directory.path, real_path))
        return await asyncio.to_thread(
            search_decision.decide_search, policy, resolved_search, [file.path for file in files], context
        )


async def _decide_off_loop(
    policy: Policy, tool: str, tool_input: JsonObject, context: PathContext, directory: str | None
) -> Decision:
    if len(policy.rules) <= _MANY_RULES:
        return decide_tool_call(policy, tool, tool_input, context, directory=directory)
    return await asyncio.to_thread(decide_tool_call, policy, tool, tool_input, context, directory=directory)


class _RuleCache:
    """Caches parsed rules by their text, because consecutive turns usually have the same rules."""

    def __init__(self) -> None:
        self._parsed: OrderedDict[str, EffectiveRules] = OrderedDict()

    async def parse(
        self, layers: Sequence[tuple[Layer, JsonObject]], config: ResolvedConfig, agent: str | None
    ) -> EffectiveRules:
        """Return the parsed rules, from the cache if possible. Raises `InvalidRule`."""
        agent_rules = [(each.permissions, each.policies) for each in _agent_configs(config, agent)]
        text = repr((layers, agent_rules))
        key = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
        if key not in self._parsed:
            if len(text) > _LARGE_RULE_CHARACTERS:
                effective_rules = await asyncio.to_thread(_parse_and_compile, layers, config, agent)
            else:
                effective_rules = parse_effective_rules(layers, config, agent)
            self._parsed[key] = effective_rules
            while len(self._parsed) > _MAX_CACHED:
                self._parsed.popitem(last=False)
        self._parsed.move_to_end(key)
        return self._parsed[key]


def _parse_and_compile(
    layers: Sequence[tuple[Layer, JsonObject]], config: ResolvedConfig, agent: str | None
) -> EffectiveRules:
    """Parse the rules and compile the patterns that are otherwise compiled at first use."""
    effective_rules = parse_effective_rules(layers, config, agent)
    _ = effective_rules.policy.forbidden_paths
    return effective_rules


class _EnvironmentLinks:
    """Resolved links, and the paths that still have to be resolved. No rule allows an unresolved path."""

    def __init__(self) -> None:
        self._resolved: dict[str, str | None] = {}
        self.unresolved: set[str] = set()

    def resolve(self, path: str) -> str | None:
        if path not in self._resolved:
            self.unresolved.add(path)
        return self._resolved.get(path)

    def add_resolved(self, resolved: Mapping[str, str | None]) -> None:
        self._resolved.update(resolved)
        self.unresolved -= resolved.keys()


def _agent_configs(config: ResolvedConfig, agent: str | None) -> list[ResolvedConfig | Subagent]:
    return [config, *(subagent for subagent in config.subagents if subagent.name == agent)]


def parse_effective_rules(
    layers: Sequence[tuple[Layer, JsonObject]], config: ResolvedConfig, agent: str | None
) -> EffectiveRules:
    """Parse the rules and hooks that apply to a session, or to the subagent `agent`. A subagent has no more permissions
    than its parent: its own rules are added to all others.
    """
    agent_configs = _agent_configs(config, agent)
    all_layers = [*layers, *((Layer.AGENT, each.permissions) for each in agent_configs)]
    rules = [
        LayeredRule(layer, parse_rule(text, outcome))
        for layer, permissions in all_layers
        for outcome, texts in read_rules(permissions).items()
        for text in texts
    ]
    toolset_rules = [rule for each in agent_configs for rule in convert_toolset_policies(each.policies)]
    by_event: dict[HookEvent, list[Hook]] = {}
    for hook in hook_config.parse_hooks(all_layers):
        by_event.setdefault(hook.event, []).append(hook)
    return EffectiveRules(Policy([*rules, *toolset_rules]), has_written_rules=bool(rules), hooks=by_event)
