"""Merging the rules of two projects with one location keeps everything that either denies."""

from footplate.domain.json import JsonObject
from footplate.domain.projects.location_permission_rules import merge_rules


def test_merged_rules_deny_what_either_denies_and_allow_what_both_allow() -> None:
    one: JsonObject = {"deny": ["Bash(curl *)"], "allow": ["Bash(ls)", "Bash(make)"], "hooks": {"Stop": [1]}}
    other: JsonObject = {"deny": ["Read(.env)", "Bash(curl *)"], "ask": ["WebFetch"], "allow": ["Bash(ls)"]}
    assert merge_rules(one, other) == {
        "deny": ["Bash(curl *)", "Read(.env)"],
        "ask": ["WebFetch"],
        "allow": ["Bash(ls)"],
        "hooks": {"Stop": [1]},
    }
    assert merge_rules({}, one) == one
    assert merge_rules(one, {"deny": []}) == one
