"""Path patterns, according to the table in Claude Code's documentation, and symbolic links."""

import pytest
from tests.unit.gate.rule_setup import CONTEXT

from footplate.domain.policy.permissions import PermissionOutcome
from footplate.gate.rules.evaluation_budget import EvaluationBudget
from footplate.gate.rules.glob_overlap import globs_may_overlap
from footplate.gate.rules.path_context import FileTarget, PathContext, normalise_path, resolve_target
from footplate.gate.rules.path_pattern import PathPattern

ALLOW, DENY = PermissionOutcome.ALLOW, PermissionOutcome.DENY


@pytest.mark.parametrize(
    ("pattern", "outcome", "path", "covered"),
    [
        ("src/**", ALLOW, "/work/tree/src/app.ts", True),
        ("src/**", ALLOW, "/work/tree/vendor/pkg/src/lib.js", False),
        ("src/**", DENY, "/work/tree/vendor/pkg/src/lib.js", True),
        ("/src/**", DENY, "/work/tree/vendor/pkg/src/lib.js", False),
        ("/src/**", DENY, "/work/tree/src/lib.js", True),
        ("**/src/**", ALLOW, "/work/tree/vendor/pkg/src/lib.js", True),
        (".env", DENY, "/work/tree/a/b/.env", True),
        ("./.env", DENY, "/work/tree/.env", True),
        ("./.env", ALLOW, "/work/tree/a/.env", False),
        (".env", DENY, "/work/.env", False),
        ("//**/.env", DENY, "/work/.env", True),
        ("//etc/**", DENY, "/etc/hosts", True),
        ("/etc/**", DENY, "/etc/hosts", False),
        ("~/.ssh/**", DENY, "/home/dev/.ssh/id", True),
        ("~/.ssh/**", DENY, "/work/tree/.ssh/id", False),
        ("*.log", ALLOW, "/work/tree/a/b.log", True),
        ("secrets/**", DENY, "/work/tree/secrets", True),
        ("src/**", ALLOW, "/work/tree_evil/src/x", False),
        ("src/**", ALLOW, "/work/tree/src", False),
        ("src/**", ALLOW, "/work/tree/src2/x", False),
    ],
)
def test_paths_that_a_pattern_covers(pattern: str, outcome: PermissionOutcome, path: str, covered: bool) -> None:  # noqa: FBT001
    assert PathPattern(pattern, outcome).covers(path, CONTEXT) is covered


class _Links:
    def resolve(self, path: str) -> str | None:
        return normalise_path(path).replace("/src/door", "/secrets")


def test_a_link_is_allowed_only_if_both_ends_are_and_denied_if_one_is() -> None:
    context = PathContext(root="/work/tree", links=_Links())
    through = resolve_target(context, context.root, "src/door/key")
    assert through == FileTarget("/work/tree/src/door/key", "/work/tree/secrets/key")
    assert PathPattern("secrets/**", DENY).forbids(through, context)
    assert PathPattern("src/door/**", DENY).forbids(through, context)
    assert not PathPattern("src/**", ALLOW).permits(through, context)
    assert PathPattern("**", ALLOW).permits(through, context)


def test_paths_that_cannot_be_resolved_are_never_permitted() -> None:
    for name in ("/proc/self/cwd/x", "~bob/x", "/dev/fd/3"):
        assert resolve_target(CONTEXT, CONTEXT.root, name).real_path is None


@pytest.mark.parametrize(
    ("glob", "pattern", "meets"),
    [
        ("/t/*.py", "/t/**/.env", False),
        ("/t/*", "/t/**/.env", False),
        ("/t/.e*", "/t/**/.env", True),
        ("/t/s*/key", "/t/secrets/**", True),
        ("/t/src/*", "/t/secrets/**", False),
        ("/t/*", "/t/secrets/**", True),
        ("/t/[s]ecrets/x", "/t/secrets/**", True),
        ("/t/a?c", "/t/abc", True),
    ],
)
def test_globs_that_may_find_a_covered_file(glob: str, pattern: str, meets: bool) -> None:  # noqa: FBT001
    assert globs_may_overlap(glob, pattern, EvaluationBudget()) is meets
