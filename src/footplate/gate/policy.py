"""All rules that apply to a session, in the order deny, ask, allow, regardless of the layer that defines them.

An allow rule of a lower layer therefore satisfies the default, which is to ask, but never overrides an explicit ask or
deny of a higher layer. Nor does an allow rule of a higher layer override an ask or deny of a lower one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final, NamedTuple

from footplate.domain.permissions import Decision, Layer, Outcome
from footplate.gate.domains import DomainPattern
from footplate.gate.paths import Forbidden, PathPattern
from footplate.gate.patterns import TextPattern
from footplate.gate.places import Place, Target
from footplate.gate.rules import BASH, EDIT, READ, WEB_FETCH, Parameter, Rule, parse_rule

FORBIDDING: Final = (Outcome.DENY, Outcome.ASK)
ORDER: Final = (*FORBIDDING, Outcome.ALLOW)
_AS: Final = {"Glob": READ, "Grep": READ, "Write": EDIT, "NotebookEdit": EDIT, "MultiEdit": EDIT}
"""The tool whose path rules apply to another tool."""


class Placed(NamedTuple):
    """A rule and the layer that defines it."""

    layer: Layer
    rule: Rule

    def says(self, reason: str) -> Decision:
        """Return the decision that this rule makes."""
        return Decision(self.rule.outcome, reason, self.rule.text, self.layer)


class Policy:
    """The rules of all layers, indexed by outcome, tool and program."""

    def __init__(self, rules: Iterable[Placed] = ()) -> None:
        self.rules: Final = tuple(sorted(rules, key=lambda each: (ORDER.index(each.rule.outcome), each.layer)))
        self._bare: Final = self._by_outcome()
        self._commands: Final = self._by_program()
        self._paths: Final = self._by_tool()
        self._forbidding_paths: Final = {writes: tuple(self._that_forbid(writes=writes)) for writes in (False, True)}
        self.restricts_files: Final = bool(self._forbidding_paths[True])
        self._programs: Final = {name for outcome in FORBIDDING for name in self._commands[outcome][0]}
        self._any_program: Final = any(self._commands[outcome][1] for outcome in FORBIDDING)
        self.restricts_commands: Final = self._restricts()
        """Whether commands must be analysed although every command is allowed, because other rules restrict them."""

    @classmethod
    def of(cls, layers: Mapping[Layer, Mapping[Outcome, Sequence[str]]]) -> "Policy":
        """Parse the rules of all layers. Raises `InvalidRule`."""
        return cls(
            Placed(layer, parse_rule(text, outcome))
            for layer, lists in layers.items()
            for outcome, texts in lists.items()
            for text in texts
        )

    def whole(self, tool: str, outcome: Outcome) -> Placed | None:
        """Return a rule of this outcome that applies to every call of a tool, named as in Claude Code."""
        if not self._bare[outcome]:
            return None
        return next((each for each in self._bare[outcome] if each.rule.tool.matches(tool)), None)

    def may_forbid_program(self, name: str) -> bool:
        """Return whether a deny or ask rule may match this program."""
        return self._any_program or name in self._programs

    def commands(self, outcome: Outcome, program: str) -> Iterator[tuple[Placed, TextPattern]]:
        """Return the command rules of this outcome that may match this program."""
        named, open_ended = self._commands[outcome]
        yield from named.get(program, ())
        yield from open_ended

    def count_commands(self, program: str) -> int:
        """Return the number of command rules that may match this program."""
        return sum(len(named.get(program, ())) + len(open_ended) for named, open_ended in self._commands.values())

    def path(self, tool: str, outcome: Outcome, target: Target, place: Place) -> Placed | None:
        """Return a rule of this outcome that covers a file."""
        for placed, pattern in self.paths(tool, outcome):
            if outcome is Outcome.ALLOW:
                if pattern.permits(target, place):
                    return placed
            elif pattern.forbids(target, place):
                return placed
        return None

    def paths(self, tool: str, outcome: Outcome) -> Sequence[tuple[Placed, PathPattern]]:
        return self._paths.get((tool, outcome), ())

    def forbidding_paths(self, *, writes: bool) -> Sequence[tuple[Placed, PathPattern]]:
        """Return the deny and ask rules for reading or writing files. A rule that forbids reading a file also forbids
        writing it.
        """
        return self._forbidding_paths[writes]

    @cached_property
    def forbidden_files(self) -> Forbidden:
        return Forbidden(pattern for _, pattern in self.forbidding_paths(writes=True))

    def domain(self, outcome: Outcome, host: str) -> Placed | None:
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

    def special(self, tool: str, outcome: Outcome) -> Iterator[tuple[Placed, TextPattern | Parameter]]:
        """Return the rules for an agent's name or for a field of the input."""
        for each in self.rules:
            specifier = each.rule.specifier
            if each.rule.outcome is not outcome or not each.rule.tool.matches(tool):
                continue
            if isinstance(specifier, Parameter) or (isinstance(specifier, TextPattern) and tool != BASH):
                yield each, specifier

    def _restricts(self) -> bool:
        return any(
            each.rule.outcome is not Outcome.ALLOW
            and each.rule.specifier is not None
            and not isinstance(each.rule.specifier, Parameter)
            and any(each.rule.tool.matches(tool) for tool in (BASH, READ, EDIT, *_AS, WEB_FETCH))
            for each in self.rules
        )

    def _by_outcome(self) -> dict[Outcome, list[Placed]]:
        return {
            outcome: [each for each in self.rules if each.rule.outcome is outcome and each.rule.bare]
            for outcome in ORDER
        }

    def _by_program(
        self,
    ) -> dict[Outcome, tuple[dict[str, list[tuple[Placed, TextPattern]]], list[tuple[Placed, TextPattern]]]]:
        found: dict[Outcome, tuple[dict[str, list[tuple[Placed, TextPattern]]], list[tuple[Placed, TextPattern]]]]
        found = {outcome: ({}, []) for outcome in ORDER}
        for each in self.rules:
            pattern = each.rule.specifier
            if not isinstance(pattern, TextPattern) or not each.rule.tool.matches(BASH):
                continue
            named, open_ended = found[each.rule.outcome]
            program, space, _ = pattern.head.partition(" ")
            if program and (space or pattern.exact) and "'" not in program and '"' not in program:
                named.setdefault(program, []).append((each, pattern))
            else:
                open_ended.append((each, pattern))
        return found

    def _that_forbid(self, *, writes: bool) -> Iterator[tuple[Placed, PathPattern]]:
        for tool in (READ, EDIT) if writes else (READ,):
            for outcome in FORBIDDING:
                yield from self.paths(tool, outcome)

    def _by_tool(self) -> dict[tuple[str, Outcome], list[tuple[Placed, PathPattern]]]:
        found: dict[tuple[str, Outcome], list[tuple[Placed, PathPattern]]] = {}
        for each in self.rules:
            if isinstance(each.rule.specifier, PathPattern):
                tool = each.rule.tool.head
                found.setdefault((_AS.get(tool, tool), each.rule.outcome), []).append((each, each.rule.specifier))
        return found
