"""The gate allows no command of the bypass corpus. `just prove gate-1` also runs the commands."""

from pathlib import Path

from bench.support.bypass import corpus
from bench.support.bypass.attack_tree import AttackTree

from footplate.domain.policy.permissions import PermissionOutcome
from footplate.gate.evaluation.shell_command_decision import explain_command
from footplate.gate.rules.local_symlink_resolver import LocalLinkResolver
from footplate.gate.rules.path_context import PathContext


def test_no_bypass_is_allowed_in_any_form(tmp_path: Path) -> None:
    arena = AttackTree(tmp_path)
    arena.reset()
    context = PathContext(root=str(arena.tree), home=str(arena.home), links=LocalLinkResolver())
    policies = {name: corpus.load_policy(name) for name in corpus.SETS}
    allowed = [
        (each.rules, each.wrapper, each.command)
        for case in corpus.load_cases()
        for each in (case, *corpus.wrap_case(case))
        if explain_command(
            policies[each.rules], each.fill_placeholders(arena.tree, arena.outside), context
        ).decision.outcome
        is PermissionOutcome.ALLOW
    ]
    assert allowed == []


def test_the_corpus_is_large_and_of_many_kinds() -> None:
    cases = corpus.load_cases()
    assert len({(case.rules, case.command) for case in cases}) >= 300
    assert len({case.group for case in cases}) >= 12


def test_everyday_commands_need_no_approval() -> None:
    rules, context = corpus.load_policy("everyday"), PathContext(root="/work/tree", home="/home/dev")
    everyday = corpus.load_everyday_commands()
    not_allowed = [
        each
        for each in everyday
        if explain_command(rules, each, context).decision.outcome is not PermissionOutcome.ALLOW
    ]
    assert len(everyday) >= 200
    assert len(not_allowed) <= 0.05 * len(everyday), not_allowed
