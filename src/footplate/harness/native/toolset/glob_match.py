"""Matches paths against glob patterns with `**`, in time linear in the length of pattern and path.

Patterns and paths are untrusted, and Python's backtracking `re` could take very long and block the worker.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from footplate.domain.text.linear_regex import LinearRegex, UnsupportedPattern
from footplate.harness.native.tool_failure_error import ToolFailure

MAX_ALTERNATIVES: Final = 256
_TOKEN: Final = re.compile(r"(\*\*|\*|/)|(\?)|\[([!^]?)(\]?[^\]]*)\]|\\(.)|(.)", re.DOTALL)
_BRACES: Final = re.compile(r"(?:[^\\{]|\\.|\{(?![^{}]*\}))*?\{([^{}]*)\}", re.DOTALL)
_CROSSING: Final = "**"
_MAX_CHARACTERS: Final = 2000
_MAX_BYTES: Final = 1024 * 1024

_Token = tuple[str, ...]
_Component = LinearRegex | None
"""None stands for `**`: any number of directories."""


@dataclass(frozen=True, slots=True)
class Glob:
    alternatives: Sequence[Sequence[_Component]]

    def match(self, path: str) -> bool:
        parts = path.split("/")
        return any(_matches(components, parts) for components in self.alternatives)


def compile_pattern(pattern: str) -> Glob:
    r"""Compiles a pattern: `**/` crosses directories, `*` and `?` do not, `[…]` and `{a,b}` work as in a shell, and `\`
    escapes a character.
    """
    if len(pattern) > _MAX_CHARACTERS:
        raise ToolFailure(f"The pattern is longer than {_MAX_CHARACTERS} characters.")
    alternatives: list[Sequence[_Component]] = []
    for plain in _expand_braces(pattern.removeprefix("./")):
        for components in _split_components(_TOKEN.findall(plain)):
            if len(alternatives) == MAX_ALTERNATIVES:
                raise ToolFailure(
                    f"The pattern expands to more than {MAX_ALTERNATIVES} alternatives. Use fewer braces."
                )
            alternatives.append(components)
    return Glob(alternatives)


def _matches(components: Sequence[_Component], parts: Sequence[str]) -> bool:
    """Matches the components in order. On a mismatch, only the last `**` is retried, with one more directory."""
    at, part = 0, 0
    crossing, crossing_end = -1, 0
    while part < len(parts):
        is_over = at == len(components)
        component = None if is_over else components[at]
        if component is None and not is_over:
            crossing, crossing_end, at = at, part, at + 1
            if at == len(components):  # a trailing `**` matches at least one name
                return True
        elif component is not None and component.fullmatch(parts[part]):
            at, part = at + 1, part + 1
        elif crossing >= 0:
            crossing_end += 1
            at, part = crossing + 1, crossing_end
        else:
            return False
    return at == len(components)


def _expand_braces(pattern: str) -> Iterator[str]:
    """Expands the braces lazily, so that the caller can stop at its limit."""
    remaining = [pattern]
    while remaining:
        current = remaining.pop()
        found = _BRACES.match(current)
        if found is None:
            yield current
            continue
        before, after = current[: found.start(1) - 1], current[found.end() :]
        remaining += [f"{before}{choice}{after}" for choice in reversed(found[1].split(","))]


def _split_components(tokens: Sequence[_Token]) -> Iterator[Sequence[_Component]]:
    """Splits a pattern into path components. A `**` next to other characters (`a**b`) matches within one directory
    (`a*b`) or across directories (`a*/**/*b`), so both alternatives are returned.
    """
    for index, token in enumerate(tokens):
        is_whole_component = (index == 0 or tokens[index - 1][0] == "/") and (
            index + 1 == len(tokens) or tokens[index + 1][0] == "/"
        )
        if token[0] == _CROSSING and not is_whole_component:
            for written in (("*",), ("*", "/", _CROSSING, "/", "*")):
                yield from _split_components([*tokens[:index], *map(_make_token, written), *tokens[index + 1 :]])
            return
    components: list[list[str]] = [[]]
    for sign, *others in tokens:
        if sign == "/":
            components.append([])
        else:
            components[-1].append(sign or _character_expression(*others))
    yield [None if component == [_CROSSING] else _component_expression(component) for component in components]


def _make_token(sign: str) -> _Token:
    return (sign, "", "", "", "", "")


def _character_expression(one: str, negation: str, inside: str, quoted: str, plain: str) -> str:
    if inside:
        escaped = inside.replace("\\", "\\\\").replace("[", "\\[")
        return f"[{'^' if negation else ''}{escaped}]"
    return "." if one else re.escape(quoted or plain)


def _component_expression(component: Sequence[str]) -> LinearRegex:
    try:
        return LinearRegex("".join(".*" if sign == "*" else sign for sign in component), _MAX_BYTES)
    except UnsupportedPattern as error:
        raise ToolFailure(f"The pattern is not supported: {error}.") from None
