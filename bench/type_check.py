"""Checks the types of all code with pyrefly, and finds what pyrefly does not: conditions that are always true, and
ignores that do not name a rule.

A condition on a coroutine is always true if its `await` is missing, and may then allow what should be refused. Pyrefly
reports conditions that are always true only for functions and final classes. Its rule `implicit-bool` reports each
condition that is not a bool; of these, this check keeps those whose type has no false value.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
_FOLDERS: Final = ("src", "tests", "bench")
_CONDITION_RULE: Final = "implicit-bool"
_CONVERSION: Final = re.compile(r"Implicit conversion of `(.*)` to `bool` is not allowed")
_CAN_BE_FALSE: Final = frozenset(
    {
        *("Any", "Unknown", "object", "None", "Literal", "LiteralString", "bool"),
        *("bytearray", "bytes", "float", "int", "memoryview", "str", "timedelta"),
        *("Collection", "Counter", "Iterable", "Mapping", "Sequence"),
        *("defaultdict", "deque", "dict", "frozenset", "list", "set", "tuple", "RepeatedCompositeFieldContainer"),
        *("MessageAttachments", "Packages", "ToolLimit"),
    }
)
"""Types with a `__bool__` or `__len__`, or with subclasses that have one. The last row are our own."""
_PARTS: Final = re.compile(r"[\[\]()|]|'(?:[^'\\]|\\.)*'|[^\[\]()|']+")
_IGNORE_WITHOUT_RULE: Final = re.compile(r"#\s*(?:pyrefly:\s*ignore(?!\[[a-z])|type:\s*ignore)")


def find_type_errors(root: Path = ROOT) -> list[str]:
    options = ("--warn", _CONDITION_RULE, "--min-severity", "warn", "--output-format", "json", "--summary=none")
    command = [Path(sys.executable).parent / "pyrefly", "check", *options, "--progress-bar", "no"]
    ended = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    try:
        findings = json.loads(ended.stdout)["errors"]
    except ValueError:
        return [ended.stderr or ended.stdout]
    return [line for finding in findings if (line := _describe_finding(finding)) is not None]


def find_ignores_without_rule(root: Path = ROOT) -> list[str]:
    return [
        f"{path.relative_to(root)}:{number}: name the rule: `# pyrefly: ignore[rule]`"
        for folder in _FOLDERS
        for path in sorted((root / folder).rglob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if _IGNORE_WITHOUT_RULE.search(line)
    ]


def is_always_true(shown_type: str) -> bool:
    """Returns whether a type, as pyrefly shows it, has no value that is false."""
    return not any(name in _CAN_BE_FALSE for name in _union_members(shown_type))


def _describe_finding(finding: Mapping[str, Any]) -> str | None:
    rule, text = finding["name"], finding["description"]
    if rule == _CONDITION_RULE:
        conversion = _CONVERSION.search(text)
        if conversion is not None and not is_always_true(conversion[1]):
            return None
        rule, text = "always-true", f"{text}: it is always true"
    return f"{finding['path']}:{finding['line']}:{finding['column']}: {text} [{rule}]"


def _union_members(shown_type: str) -> Iterator[str]:
    """Yields the name of each member of a union, without type arguments."""
    depth, name = 0, ""
    for part in _PARTS.findall(shown_type):
        if part in "[(":
            depth += 1
        elif part in "])":
            depth -= 1
        elif part == "|" and depth == 0:
            yield name.strip()
            name = ""
        elif depth == 0:
            name += part
    yield name.strip()


if __name__ == "__main__":
    problems = [*find_type_errors(), *find_ignores_without_rule()]
    print("\n".join(problems) or "All types fit.")
    sys.exit(1 if problems else 0)
