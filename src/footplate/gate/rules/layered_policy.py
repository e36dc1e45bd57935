"""Combines all rules that apply to a session. They are evaluated in the order deny, ask, allow, regardless of the layer
that defines them.

The layers are organisation, project, agent and session. An allow rule of any layer replaces the default, which is to
ask. It never overrides an ask or deny rule, whether of a higher or a lower layer.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final, NamedTuple

from footplate.domain.policy.permissions import Decision, Layer, PermissionOutcome
from footplate.gate.rules.domain_pattern import DomainPattern
from footplate.gate.rules.path_context import FileTarget, PathContext
from footplate.gate.rules.path_pattern import ForbiddenPaths, PathPattern
from footplate.gate.rules.rule_parser import BASH, EDIT, READ, WEB_FETCH, ParameterPattern, Rule, parse_rule
from footplate.gate.rules.text_pattern import TextPattern

RESTRICTING_OUTCOMES: Final = (PermissionOutcome.DENY, PermissionOutcome.ASK)
OUTCOME_ORDER: Final = (*RESTRICTING_OUTCOMES, PermissionOutcome.ALLOW)
_PATH_RULE_TOOLS: Final = {"Glob": READ, "Grep": READ, "Write": EDIT, "NotebookEdit": EDIT, "MultiEdit": EDIT}
"""The tool whose path rules apply to another tool."""


class LayeredRule(NamedTuple):
    """A rule and the layer that defines it."""

    layer: Layer
    rule: Rule

    def make_decision(self, reason: str) -> Decision:
        """Return the decision that this rule makes."""
        return Decision(self.rule.outcome, reason, self.rule.text, self.layer)


class Policy:
    """The rules of all layers, indexed by outcome, tool and program."""

    def __init__(self, rules: Iterable[LayeredRule] = ()) -> None:
        self.rules: Final = tuple(sorted(rules, key=lambda each: (OUTCOME_ORDER.index(each.rule.outcome), each.layer)))
        self._bare_rules: Final = self._index_bare_rules()
        self._command_rules: Final = self._index_command_rules()
        self._path_rules: Final = self._index_path_rules()
        self._restricting_path_rules: Final = {
            writes: tuple(self._collect_restricting_path_rules(writes=writes)) for writes in (False, True)
        }
        self.restricts_files: Final = bool(self._restricting_path_rules[True])
        self._restricted_programs: Final = {
            name for outcome in RESTRICTING_OUTCOMES for name in self._command_rules[outcome][0]
        }
        self._restricts_any_program: Final = any(self._command_rules[outcome][1] for outcome in RESTRICTING_OUTCOMES)
        self.restricts_commands: Final = self._has_command_restrictions()
        """Whether commands must be analysed although every command is allowed, because other rules restrict them."""

    @classmethod
    def parse(cls, layers: Mapping[Layer, Mapping[PermissionOutcome, Sequence[str]]]) -> "Policy":
        """Parse the rules of all layers. Raises `InvalidRule`."""
        return cls(
            LayeredRule(layer, parse_rule(text, outcome))
            for layer, lists in layers.items()
            for outcome, texts in lists.items()
            for text in texts
        )

    def find_tool_rule(self, tool: str, outcome: PermissionOutcome) -> LayeredRule | None:
        """Return a rule of this outcome that applies to every call of a tool, named as in Claude Code."""
        if not self._bare_rules[outcome]:
            return None
        return next((each for each in self._bare_rules[outcome] if each.rule.tool.matches(tool)), None)

    def may_forbid_program(self, name: str) -> bool:
        """Return whether a deny or ask rule may match this program."""
        return self._restricts_any_program or name in self._restricted_programs

    def command_rules(self, outcome: PermissionOutcome, program: str) -> Iterator[tuple[LayeredRule, TextPattern]]:
        """Return the command rules of this outcome that may match this program."""
        named, open_ended = self._command_rules[outcome]
        yield from named.get(program, ())
        yield from open_ended

    def count_command_rules(self, program: str) -> int:
        """Return the number of command rules that may match this program."""
        return sum(len(named.get(program, ())) + len(open_ended) for named, open_ended in self._command_rules.values())

    def find_path_rule(
        self, tool: str, outcome: PermissionOutcome, target: FileTarget, context: PathContext
    ) -> LayeredRule | None:
        """Return a rule of this outcome that covers a file."""
        for matched, pattern in self.path_rules(tool, outcome):
            if outcome is PermissionOutcome.ALLOW:
                if pattern.permits(target, context):
                    return matched
            elif pattern.forbids(target, context):
                return matched
        return None

    def path_rules(self, tool: str, outcome: PermissionOutcome) -> Sequence[tuple[LayeredRule, PathPattern]]:
        return self._path_rules.get((tool, outcome), ())

    def restricting_path_rules(self, *, writes: bool) -> Sequence[tuple[LayeredRule, PathPattern]]:
        """Return the deny and ask rules for reading or writing files. A rule that forbids reading a file also forbids
        writing it.
        """
        return self._restricting_path_rules[writes]

    @cached_property
    def forbidden_paths(self) -> ForbiddenPaths:
        return ForbiddenPaths(pattern for _, pattern in self.restricting_path_rules(writes=True))

    def find_domain_rule(self, outcome: PermissionOutcome, host: str) -> LayeredRule | None:
        return next(
            (
                each
                for each in self.rules
                if each.rule.outcome is outcome
                and isinstance(each.rule.specifier, DomainPattern)
                and each.rule.specifier.matches(host)
            ),
            None,
        )

    def agent_and_parameter_rules(
        self, tool: str, outcome: PermissionOutcome
    ) -> Iterator[tuple[LayeredRule, TextPattern | ParameterPattern]]:
        """Return the rules for an agent's name or for a field of the input."""
        for each in self.rules:
            specifier = each.rule.specifier
            if each.rule.outcome is not outcome or not each.rule.tool.matches(tool):
                continue
            if isinstance(specifier, ParameterPattern) or (isinstance(specifier, TextPattern) and tool != BASH):
                yield each, specifier

    def _has_command_restrictions(self) -> bool:
        return any(
            each.rule.outcome is not PermissionOutcome.ALLOW
            and each.rule.specifier is not None
            and not isinstance(each.rule.specifier, ParameterPattern)
            and any(each.rule.tool.matches(tool) for tool in (BASH, READ, EDIT, *_PATH_RULE_TOOLS, WEB_FETCH))
            for each in self.rules
        )

    def _index_bare_rules(self) -> dict[PermissionOutcome, list[LayeredRule]]:
        return {
            outcome: [each for each in self.rules if each.rule.outcome is outcome and each.rule.is_bare]
            for outcome in OUTCOME_ORDER
        }

    def _index_command_rules(
        self,
    ) -> dict[
        PermissionOutcome,
        tuple[dict[str, list[tuple[LayeredRule, TextPattern]]], list[tuple[LayeredRule, TextPattern]]],
    ]:
        index: dict[
            PermissionOutcome,
            tuple[dict[str, list[tuple[LayeredRule, TextPattern]]], list[tuple[LayeredRule, TextPattern]]],
        ]
        index = {outcome: ({}, []) for outcome in OUTCOME_ORDER}
        for each in self.rules:
            pattern = each.rule.specifier
            if not isinstance(pattern, TextPattern) or not each.rule.tool.matches(BASH):
                continue
            named, open_ended = index[each.rule.outcome]
            program, space, _ = pattern.literal_prefix.partition(" ")
            if program and (space or pattern.is_exact) and "'" not in program and '"' not in program:
                named.setdefault(program, []).append((each, pattern))
            else:
                open_ended.append((each, pattern))
        return index

    def _collect_restricting_path_rules(self, *, writes: bool) -> Iterator[tuple[LayeredRule, PathPattern]]:
        for tool in (READ, EDIT) if writes else (READ,):
            for outcome in RESTRICTING_OUTCOMES:
                yield from self.path_rules(tool, outcome)

    def _index_path_rules(self) -> dict[tuple[str, PermissionOutcome], list[tuple[LayeredRule, PathPattern]]]:
        index: dict[tuple[str, PermissionOutcome], list[tuple[LayeredRule, PathPattern]]] = {}
        for each in self.rules:
            if isinstance(each.rule.specifier, PathPattern):
                tool = each.rule.tool.literal_prefix
                index.setdefault((_PATH_RULE_TOOLS.get(tool, tool), each.rule.outcome), []).append(
                    (each, each.rule.specifier)
                )
        return index
