"""Doublestar patterns as regular expressions. Pure; the standard library has this from Python 3.13 on only."""

import re


def compile_pattern(pattern: str) -> re.Pattern[str]:
    r"""`**/` crosses directories, `*` and `?` stay in one, `[…]` and `{a,b}` as in a shell, `\` quotes."""
    return re.compile("".join(_parts(pattern.removeprefix("./"))) + r"\Z", re.DOTALL)


def _parts(pattern: str) -> list[str]:
    parts: list[str] = []
    depth = 0
    position = 0
    while position < len(pattern):
        rest = pattern[position:]
        if found := re.match(r"\*\*/|\*\*|\*|\?", rest):
            parts.append({"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}[found[0]])
        elif found := re.match(r"\[([!^]?)(\]?[^\]]*)\]", rest):
            inside = found[2].replace("\\", "\\\\").replace("[", "\\[")
            parts.append(f"(?!/)[{'^' if found[1] else ''}{inside}]")
        elif found := re.match(r"\\(.)", rest, re.DOTALL):
            parts.append(re.escape(found[1]))
        elif (found := re.match(r"\{(?=[^{}]*\})", rest)) or (depth and (found := re.match("[,}]", rest))):
            parts.append({"{": "(?:", ",": "|", "}": ")"}[found[0]])
            depth += {"{": 1, ",": 0, "}": -1}[found[0]]
        else:
            found = re.match(".", rest, re.DOTALL)
            assert found is not None
            parts.append(re.escape(found[0]))
        position += found.end()
    return parts
