"""Parses a permission rule in Claude Code's syntax: `Tool` or `Tool(specifier)`."""

import re
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from footplate.domain.policy.permissions import PermissionOutcome
from footplate.gate.errors import InvalidRule
from footplate.gate.rules.domain_pattern import DomainPattern
from footplate.gate.rules.path_pattern import MAX_WILDCARDS, PathPattern
from footplate.gate.rules.text_pattern import TextPattern

MAX_RULE_CHARACTERS: Final = 2_000

BASH: Final = "Bash"
READ: Final = "Read"
EDIT: Final = "Edit"
WEB_FETCH: Final = "WebFetch"
AGENT: Final = "Agent"
_READ_TOOLS: Final = ("Glob", "Grep")
_WRITE_TOOLS: Final = ("Write", "NotebookEdit", "MultiEdit")
_KNOWN_TOOLS: Final = (BASH, READ, EDIT, *_READ_TOOLS, *_WRITE_TOOLS, WEB_FETCH, "WebSearch", AGENT, "Task")
_PARAMETERS: Final = {
    BASH: ("run_in_background", "timeout", "timeout_ms", "restart", "description", "dangerouslyDisableSandbox"),
    AGENT: ("model", "isolation", "subagent_type", "run_in_background", "mode", "name"),
}
"""Fields of a call's input that a deny or ask rule may match."""
_NAME: Final = re.compile(r"[A-Za-z_*][A-Za-z0-9_.*-]*")
_INVISIBLE: Final = re.compile(r"[^\x20-\x7e\u00a1-\u167f\u1681-\u1fff\u2030-\u2fff\u3001-\ufefe\uff00-\U0010ffff]")
"""Control characters, zero-width characters and unusual spaces, which are invisible in a rule."""


@dataclass(frozen=True, slots=True)
class ParameterPattern:
    """A specifier that matches one field of a call's input."""

    name: str
    value: TextPattern


Specifier: TypeAlias = TextPattern | PathPattern | DomainPattern | ParameterPattern


@dataclass(frozen=True, slots=True)
class Rule:
    """One parsed permission rule."""

    outcome: PermissionOutcome
    text: str
    """The rule as it was written."""
    tool: TextPattern
    specifier: Specifier | None = field(default=None)

    @property
    def is_bare(self) -> bool:
        """Whether the rule applies to every call of the tool."""
        return self.specifier is None


def parse_rule(text: str, outcome: PermissionOutcome) -> Rule:
    """Parse one rule. Raises `InvalidRule`."""
    _check_text(text)
    name = _NAME.match(text)
    if name is None:
        raise InvalidRule(text, 1, "expected a tool name", help_text="Examples: Bash(git log *), Read(src/**).")
    tool, rest = name[0], text[name.end() :]
    if not rest:
        return Rule(outcome, text, _parse_tool(tool, text, outcome))
    if rest[0] != "(":
        raise InvalidRule(text, name.end() + 1, f"expected '(' or the end of the rule, not {rest[0]!r}")
    if rest[-1] != ")":
        raise InvalidRule(text, len(text) + 1, f"the ')' for the '(' at character {name.end() + 1} is missing")
    inside, at = rest[1:-1], name.end() + 2
    if not inside.strip():
        raise InvalidRule(text, at, "the parentheses are empty", help_text=f"To match every call, write {tool}.")
    pattern = _parse_tool(tool, text, outcome)
    if inside == "*":
        return Rule(outcome, text, pattern)
    if not pattern.is_exact:
        raise InvalidRule(text, name.end() + 1, "a tool name with * cannot be followed by a specifier in parentheses")
    return Rule(outcome, text, pattern, _parse_specifier(tool, inside, at, text, outcome))


def _check_text(text: str) -> None:
    if len(text) > MAX_RULE_CHARACTERS:
        raise InvalidRule(
            text[:40] + "…",
            MAX_RULE_CHARACTERS + 1,
            f"the rule is too long: the limit is {MAX_RULE_CHARACTERS} characters",
        )
    if hidden := _INVISIBLE.search(text):
        raise InvalidRule(text, hidden.start() + 1, f"there is an invisible character (U+{ord(hidden[0]):04X})")
    if not text.strip():
        raise InvalidRule(text, 1, "the rule is empty")
    if text != text.strip():
        raise InvalidRule(text, 1 if text[0] == " " else len(text), "there is a leading or trailing space")


def _parse_tool(tool: str, text: str, outcome: PermissionOutcome) -> TextPattern:
    if tool == "Task":
        return TextPattern.parse(AGENT)
    correct_name = next((known for known in _KNOWN_TOOLS if known.lower() == tool.lower() and known != tool), None)
    if correct_name is not None:
        raise InvalidRule(text, 1, f"there is no tool {tool!r}", help_text=f"Did you mean {correct_name}?")
    if tool.startswith("mcp__") and not tool.removeprefix("mcp__"):
        raise InvalidRule(text, len(tool) + 1, "the name of the MCP server is missing")
    if "*" not in tool:
        parts = tool.split("__")
        return TextPattern.parse(tool) if tool[:5] != "mcp__" or len(parts) > 2 else TextPattern.parse(f"{tool}__*")  # noqa: PLR2004
    if outcome is PermissionOutcome.ALLOW and not re.fullmatch(r"mcp__[^*]+?__.*", tool):
        raise InvalidRule(
            text, tool.index("*") + 1, "an allow rule may contain * only after the name of an MCP server",
            help_text="Example: mcp__github__get_*. List other tools one by one.",
        )  # fmt: skip
    return TextPattern.parse(tool)


def _parse_specifier(tool: str, inside: str, at: int, text: str, outcome: PermissionOutcome) -> Specifier:
    canonical = AGENT if tool == "Task" else tool
    if (parameter := _parse_parameter(canonical, inside, at, text, outcome)) is not None:
        return parameter
    if canonical == BASH:
        return _parse_command(inside)
    if canonical in {READ, EDIT, *_READ_TOOLS, *_WRITE_TOOLS}:
        return _parse_path(canonical, inside, at, text, outcome)
    if canonical == WEB_FETCH:
        return _parse_domain(inside, at, text)
    if canonical == AGENT:
        return TextPattern.parse(inside)
    raise InvalidRule(
        text,
        at - 1,
        f"rules for {tool} cannot have a specifier in parentheses",
        help_text=f"To match every call, write {tool}.",
    )


def _parse_parameter(tool: str, inside: str, at: int, text: str, outcome: PermissionOutcome) -> ParameterPattern | None:
    name, colon, value = inside.partition(":")
    name, value = name.strip(), value.strip()
    if not colon or not value or tool not in _PARAMETERS:
        return None
    if tool == BASH and name == "command":
        raise InvalidRule(text, at, "a rule cannot match the field `command`", help_text=f"Write Bash({value}).")
    if name not in _PARAMETERS[tool] or outcome is PermissionOutcome.ALLOW:
        return None
    return ParameterPattern(name, TextPattern.parse(value))


def _parse_command(inside: str) -> TextPattern:
    return TextPattern.parse(inside[:-2] + " *" if inside.endswith(":*") else inside)


def _parse_path(tool: str, inside: str, at: int, text: str, outcome: PermissionOutcome) -> PathPattern:
    if outcome is PermissionOutcome.ALLOW and tool in (*_READ_TOOLS, *_WRITE_TOOLS):
        replacement = READ if tool in _READ_TOOLS else EDIT
        raise InvalidRule(
            text,
            1,
            f"an allow rule for {tool} cannot have a path",
            help_text=f"Write {replacement}({inside}), which also applies to {tool}.",
        )
    if inside.startswith("!"):
        raise InvalidRule(
            text,
            at,
            "exceptions with ! are not supported",
            help_text="Use a pattern that matches only the forbidden paths.",
        )
    pattern = PathPattern(inside, outcome)
    if pattern.wildcards > MAX_WILDCARDS:
        raise InvalidRule(
            text, at, f"the path has {pattern.wildcards} wildcards (*, ? and [); the limit is {MAX_WILDCARDS}",
            help_text="Write several rules, or use a directory: src/** matches everything below src.",
        )  # fmt: skip
    if not pattern.is_valid:
        raise InvalidRule(text, at, f"{inside!r} is not a valid gitignore pattern")
    return pattern


def _parse_domain(inside: str, at: int, text: str) -> DomainPattern:
    prefix, colon, name = inside.partition(":")
    if prefix != "domain" or not colon:
        raise InvalidRule(text, at, "expected `domain:`", help_text="Example: WebFetch(domain:docs.example.com).")
    if (error := DomainPattern.find_error(name)) is not None:
        raise InvalidRule(
            text,
            at + len("domain:") + error[0],
            error[1],
            help_text="Write a host name without a path, such as docs.example.com or *.example.com.",
        )
    return DomainPattern.parse(name)
