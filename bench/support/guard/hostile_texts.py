"""Generates patterns, rules, globs, domains and cursors that take long to evaluate, and plain ones of the same kind."""

import base64
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

Request = tuple[str, str, dict[str, Any]]
"""Method, path, and further arguments of the HTTP client's request."""

_ATOMS: Final = ("a", ".", r"\w", "[a-z]", "(a|aa)", "(a|b|ab)", "(?:a?b?)", "é", r"\pL", "[^!]", "(.?)")
_REPEATS: Final = ("*", "+", "?", "{0,9}", "{24}", "{1,50}", "{999}", "*?")
_LISTS: Final = ("/v1/agents", "/v1/sessions", "/v1/environments", "/v1/approvals", "/v1/audit", "/v1/files")
_KINDS: Final = ("matcher", "path", "command", "domain", "tool", "parameter", "many", "cursor")


@dataclass(frozen=True, slots=True)
class Case:
    kind: str
    hostile: Request
    plain: Request
    rule: str | None = None
    """The rule itself, for files of rules."""


def matcher(rng: random.Random) -> str:
    pattern = "".join(rng.choice(_ATOMS) + rng.choice(_REPEATS) for _ in range(rng.randint(1, 6)))
    for _ in range(rng.randint(0, 2)):
        pattern = f"({pattern}){rng.choice(_REPEATS)}"
    return f"{pattern}!"


def path(rng: random.Random) -> str:
    piece = rng.choice(["[a-z]*", "*a", "**/", "?*", "[!a]*a", "a*a*", "**/*", "*é*", "[[:alpha:]]*", "\\*a"])
    return f"Read({rng.choice(['', '/', '//', '~/', './'])}{piece * rng.randint(5, 300)}!)"[:2500]


def command(rng: random.Random) -> str:
    return f"Bash({rng.choice(['*a', 'a *', '*-r*', ' *'])}{'*a' * rng.randint(5, 900)})"


def domain(rng: random.Random) -> str:
    head, piece = rng.choice(["*.", "*a.", "a*.", "*-*."]), rng.choice(["*a.", "a*", "*"])
    return f"WebFetch(domain:{head}{piece * rng.randint(2, 120)}com)"


def tool(rng: random.Random) -> str:
    return f"mcp__{rng.choice(['*', '*_', 'a*', '__*'])}{'*a' * rng.randint(2, 500)}"


def parameter(rng: random.Random) -> str:
    return f"Agent(model:{'*a' * rng.randint(2, 900)})"


def cursor(rng: random.Random) -> str:
    size = rng.choice([10, 1_000, 9_000])
    nested = json.dumps(["agents", "desc", "2026-11-16T08:00:00+00:00", "a" * size, True])
    return rng.choice(
        [
            "A" * size,
            "[" * size,
            base64.urlsafe_b64encode(nested.encode()).decode(),
            "%00" * (size // 3),
            "é" * (size // 6),
        ]
    )


_RULES: Final = {"path": path, "command": command, "domain": domain, "tool": tool, "parameter": parameter}
_PLAIN: Final = {
    "path": "Read(src/**)",
    "command": "Bash(git log *)",
    "domain": "WebFetch(domain:*.example.com)",
    "tool": "mcp__github__get_*",
    "parameter": "Agent(model:opus*)",
}


def cases(rng: random.Random, count: int, ids: dict[str, str]) -> Iterator[Case]:
    """Yields hostile requests. `ids`: an agent, an environment and a session of the attacker."""
    for index in range(count):
        kind = _KINDS[index % len(_KINDS)]
        if kind == "cursor":
            yield _list_case(rng, ids)
        elif kind == "matcher":
            hostile, plain = (_hooks(text) for text in (matcher(rng), "Edit|Write|mcp__.*"))
            yield _rule_case(rng, kind, hostile, plain, ids)
        elif kind == "many":
            name = rng.choice(sorted(_RULES))
            size = rng.randint(50, 1000)
            hostile = {"deny": [_RULES[name](rng)[:150] for _ in range(size)]}
            yield _rule_case(rng, kind, hostile, {"deny": [_PLAIN[name]] * size}, ids)
        else:
            rule = _RULES[kind](rng)
            yield _rule_case(rng, kind, {"deny": [rule]}, {"deny": [_PLAIN[kind]]}, ids, rule)


def _hooks(text: str) -> dict[str, Any]:
    return {"hooks": {"PreToolUse": [{"matcher": text, "hooks": [{"type": "command", "command": "true"}]}]}}


def _rule_case(
    rng: random.Random,
    kind: str,
    hostile: dict[str, Any],
    plain: dict[str, Any],
    ids: dict[str, str],
    rule: str | None = None,
) -> Case:
    route = rng.choice(["policies", "import", "replay", "agents", "sessions", "session", "projects"])
    return Case(kind, _rule_request(route, hostile, ids), _rule_request(route, plain, ids), rule)


def _rule_request(route: str, permissions: dict[str, Any], ids: dict[str, str]) -> Request:
    lists = {name: rules for name, rules in permissions.items() if name != "hooks"}
    given: dict[str, Any] = {"permissions": permissions}
    paths_and_bodies: dict[str, tuple[str, dict[str, Any]]] = {
        "policies": ("/v1/policies", given),
        "import": ("/v1/policies/import", {"settings": {**permissions, "permissions": lists}}),
        "replay": ("/v1/policies/replay", {**given, "limit": 50}),
        "agents": ("/v1/agents", {**given, "name": "a", "model": "claude-sonnet-4-5"}),
        "session": (f"/v1/sessions/{ids['session']}", given),
        "sessions": ("/v1/sessions", {**given, "agent": ids["agent"], "environment_id": ids["environment"]}),
        "projects": ("/v1/projects", {**given, "name": "p", "path": "/nowhere"}),
    }
    path, body = paths_and_bodies[route]
    return "POST", path, {"json": body}


def _list_case(rng: random.Random, ids: dict[str, str]) -> Case:
    text = cursor(rng)
    path = rng.choice([*_LISTS, f"/v1/sessions/{ids['session']}/events"])
    where = rng.choice(["page", "page", "limit", "order"])
    hostile: Request = ("GET", path, {"params": {where: text}})
    return Case("cursor", hostile, ("GET", path, {"params": {where: "nothing"}}))
