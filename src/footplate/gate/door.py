"""Decides the tool calls of one turn: loads the current rules, resolves links in the environment, evaluates rules and
runs hooks.

Rules are reloaded while a turn runs, so a new rule also applies to turns that are already running. If a rule cannot be
parsed, every call is denied until it is fixed.
"""

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from footplate.domain import mcp
from footplate.domain.agents import ResolvedConfig, Subagent
from footplate.domain.hooks import FAIL_CLOSED, Heard, HookAccess, HookEvent
from footplate.domain.json import JsonObject
from footplate.domain.permissions import TOOL_NAMES, Decision, Layer, Outcome, written
from footplate.domain.ports import Environment, Gate
from footplate.domain.running import Claim, HookRecords, RuleStore
from footplate.gate import hooks, searching
from footplate.gate.asking import Asker, NoRecords, Scene
from footplate.gate.calls import decide
from footplate.gate.errors import InvalidRule
from footplate.gate.hooks import Hook
from footplate.gate.places import Place, Target
from footplate.gate.policy import Placed, Policy
from footplate.gate.reference import rules_of
from footplate.gate.rules import BASH, parse_rule

FRESH: Final = 1.0
"""Seconds for which loaded rules are used before they are loaded again."""
_MOST_ROUNDS: Final = 8
_LARGE: Final = 10_000
"""Characters. Larger rule sets are parsed in a thread so that they do not block other turns."""
_MANY: Final = 200
"""Rules. With more rules than this, calls are evaluated in a thread."""
_KNOWN: Final = 32
NO_RULES: Final = "No rules are defined, so only the environment limits this call."
_NOWHERE: Final = "The directory in which the command would run cannot be determined."


class Gates:
    """Creates the gates of a worker's turns, which share parsed rules and the hook runner."""

    def __init__(self, rules: RuleStore, records: HookRecords | None = None, access: HookAccess | None = None) -> None:
        self._rules = rules
        self._known = _KnownRules()
        self._asker = Asker(access or HookAccess(), records or NoRecords())

    def gate(self, claim: Claim, environment: Environment) -> Gate:
        scene = Scene(claim.organisation, claim.session_id, claim.turn_id, environment, claim.context)
        return TurnGate(self._rules, scene, claim.config, self._asker, self._known)


@dataclass(frozen=True, slots=True)
class InForce:
    """The parsed rules and hooks that apply to a session, or to one of its subagents."""

    policy: Policy
    are_written: bool
    """Whether any layer has rules. The permission policies of toolsets do not count."""
    hooks: Mapping[HookEvent, Sequence[Hook]] = field(default_factory=dict)

    def settled(self, decision: Decision, *, server_s: bool) -> Decision:
        """Apply the default for sessions without rules: calls are allowed instead of requiring approval. Calls of the
        agent's MCP servers (`server_s`) are exempt.
        """
        by_default = decision.outcome is Outcome.ASK and decision.rule is None and not self.are_written
        if not server_s and (by_default or not self.policy.rules):
            return Decision(Outcome.ALLOW, NO_RULES)
        return decision


class TurnGate:
    def __init__(
        self, rules: RuleStore, scene: Scene, config: ResolvedConfig, asker: Asker, known: "_KnownRules | None" = None
    ) -> None:
        self._rules = rules
        self._known = known or _KnownRules()
        self._scene = scene
        self._config = config
        self._environment = scene.environment
        self._asker = asker
        self._servers = mcp.Names(config.mcp_servers)
        self._layers: Sequence[tuple[Layer, JsonObject]] | None = None
        self._read: dict[str | None, InForce] = {}
        self._read_at = 0.0

    async def decide(
        self, tool: str, given: JsonObject, *, directory: str | None = None, agent: str | None = None
    ) -> Decision:
        try:
            rules = await self._in_force(agent)
        except InvalidRule as error:
            return Decision(Outcome.DENY, f"Every call is denied until an invalid rule is fixed. {error.message}")
        # MCP servers that a trusted repository configures are ordinary programs in the environment: the default for the
        # agent's own servers does not apply to them.
        server_s = self._servers.of(tool) is not None
        decision = await self._by_rules(rules, tool, given, directory, server_s=server_s)
        asked = rules.hooks.get(HookEvent.BEFORE_TOOL, ())
        if decision.outcome is Outcome.DENY or not asked:
            return decision
        return await self._asked_hooks(asked, decision, tool, given, directory)

    async def tell(self, event: HookEvent, fields: JsonObject, *, about: str = "", agent: str | None = None) -> Heard:
        try:
            asked = (await self._in_force(agent)).hooks.get(event, ())
        except InvalidRule as error:
            return Heard(
                f"Prompts are blocked until an invalid rule is fixed. {error.message}" if event in FAIL_CLOSED else None
            )
        name = TOOL_NAMES.get(about, about)
        tool: JsonObject = {"tool_name": name} if event is HookEvent.AFTER_TOOL else {}
        return await self._asker.tell(self._scene, asked, {**tool, **fields}, about=name)

    async def _asked_hooks(
        self, asked: Sequence[Hook], decision: Decision, tool: str, given: JsonObject, directory: str | None
    ) -> Decision:
        """Combine the rules' decision with the hooks'. A hook's denial is final, and its `ask` requires approval even
        if a rule allows the call. Its `allow` only replaces a default, never the decision of a rule.
        """
        said = await self._asker.judge(self._scene, asked, TOOL_NAMES.get(tool, tool), given, directory=directory)
        if said is None or (said.outcome is Outcome.ALLOW and decision.rule is not None):
            return decision
        stricter = said.outcome is Outcome.DENY or decision.outcome is Outcome.ALLOW
        return said if stricter or said.outcome is Outcome.ALLOW else decision

    async def _by_rules(
        self, rules: InForce, tool: str, given: JsonObject, directory: str | None, *, server_s: bool
    ) -> Decision:
        if not rules.policy.rules and not server_s:
            return Decision(Outcome.ALLOW, NO_RULES)
        return rules.settled(await self._judged(rules.policy, tool, given, directory), server_s=server_s)

    async def _in_force(self, agent: str | None) -> InForce:
        now = time.monotonic()
        if self._layers is None or now - self._read_at >= FRESH:
            named = self._scene.context.get("directory")
            layers = await self._rules.rules(
                self._scene.organisation,
                self._scene.session_id,
                directory=named if isinstance(named, str) else None,
            )
            if layers != self._layers:
                self._layers, self._read = layers, {}
            self._read_at = now
        read, layers = self._read, self._layers
        if agent not in read:
            read[agent] = await self._known.read(layers, self._config, agent)
        return read[agent]

    async def _judged(self, policy: Policy, tool: str, given: JsonObject, directory: str | None) -> Decision:
        """Evaluate the rules with links resolved inside the environment. The evaluation itself shows which paths it
        needs, so it is repeated until all of them are resolved.
        """
        environment, links = self._environment, _Links()
        await environment.ensure_open()
        is_command = TOOL_NAMES.get(tool, tool) == BASH
        if is_command and directory is None:
            directory = await environment.directory()
            if directory is None:
                lost = decide(policy, tool, given, Place(root=environment.root, home=environment.home, links=links))
                return lost if lost.outcome is Outcome.DENY else Decision(Outcome.ASK, _NOWHERE)
        place = Place(root=environment.root, home=environment.home, links=links)
        decision = await _decide(policy, tool, given, place, directory)
        for _ in range(_MOST_ROUNDS):
            if not links.unknown:
                break
            paths = sorted(links.unknown)
            links.learn(dict(zip(paths, await environment.real(paths), strict=True)))
            decision = await _decide(policy, tool, given, place, directory)
        if decision.outcome is Outcome.ALLOW:
            return await self._shown(policy, tool, given, place, directory) or decision
        return decision

    async def _shown(
        self, policy: Policy, tool: str, given: JsonObject, place: Place, directory: str | None
    ) -> Decision | None:
        """Return the decision of a rule that forbids a file which a search would show, or None."""
        search = searching.search_of(policy, tool, given, place, directory)
        if search is None:
            return None
        try:
            (real,) = await self._environment.real([search.below.path])
            files = await self._environment.list_files(real or search.below.path)
        except (FileNotFoundError, NotADirectoryError):
            return None  # a single file has been decided already, and a missing directory shows nothing
        except OSError as error:
            return Decision(Outcome.ASK, f"The files that this search would show cannot be listed: {error.strerror}.")
        known = replace(search, below=Target(search.below.path, real))
        return await asyncio.to_thread(searching.judge, policy, known, [file.path for file in files], place)


async def _decide(policy: Policy, tool: str, given: JsonObject, place: Place, directory: str | None) -> Decision:
    if len(policy.rules) <= _MANY:
        return decide(policy, tool, given, place, directory=directory)
    return await asyncio.to_thread(decide, policy, tool, given, place, directory=directory)


class _KnownRules:
    """Caches parsed rules by their text, because consecutive turns usually have the same rules."""

    def __init__(self) -> None:
        self._read: OrderedDict[str, InForce] = OrderedDict()

    async def read(
        self, layers: Sequence[tuple[Layer, JsonObject]], config: ResolvedConfig, agent: str | None
    ) -> InForce:
        """Return the parsed rules, from the cache if possible. Raises `InvalidRule`."""
        own = [(each.permissions, each.policies) for each in _agents(config, agent)]
        text = repr((layers, own))
        key = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
        if key not in self._read:
            if len(text) > _LARGE:
                found = await asyncio.to_thread(_prepared, layers, config, agent)
            else:
                found = in_force(layers, config, agent)
            self._read[key] = found
            while len(self._read) > _KNOWN:
                self._read.popitem(last=False)
        self._read.move_to_end(key)
        return self._read[key]


def _prepared(layers: Sequence[tuple[Layer, JsonObject]], config: ResolvedConfig, agent: str | None) -> InForce:
    """Parse the rules and compile the patterns that are otherwise compiled at first use."""
    found = in_force(layers, config, agent)
    _ = found.policy.forbidden_files
    return found


class _Links:
    """Resolved links, and the paths that still have to be resolved. No rule allows an unresolved path."""

    def __init__(self) -> None:
        self._known: dict[str, str | None] = {}
        self.unknown: set[str] = set()

    def real(self, path: str) -> str | None:
        if path not in self._known:
            self.unknown.add(path)
        return self._known.get(path)

    def learn(self, found: Mapping[str, str | None]) -> None:
        self._known.update(found)
        self.unknown -= found.keys()


def _agents(config: ResolvedConfig, agent: str | None) -> list[ResolvedConfig | Subagent]:
    return [config, *(subagent for subagent in config.subagents if subagent.name == agent)]


def in_force(layers: Sequence[tuple[Layer, JsonObject]], config: ResolvedConfig, agent: str | None) -> InForce:
    """Parse the rules and hooks that apply to a session, or to the subagent `agent`. A subagent has no more permissions
    than its parent: its own rules are added to all others.
    """
    own = _agents(config, agent)
    all_layers = [*layers, *((Layer.AGENT, each.permissions) for each in own)]
    rules = [
        Placed(layer, parse_rule(text, outcome))
        for layer, permissions in all_layers
        for outcome, texts in written(permissions).items()
        for text in texts
    ]
    usual = [rule for each in own for rule in rules_of(each.policies)]
    by_event: dict[HookEvent, list[Hook]] = {}
    for hook in hooks.hooks_of(all_layers):
        by_event.setdefault(hook.event, []).append(hook)
    return InForce(Policy([*rules, *usual]), are_written=bool(rules), hooks=by_event)
