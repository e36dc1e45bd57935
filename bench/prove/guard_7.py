"""A second attack, on what the first did not try: at least 60 attempts, and none of them achieves anything.

Each attempt is a test against the real part: git, PostgreSQL, Temporal, sockets, threads, the recorder of Claude Code.
It fails when the attacker gets what the attempt is after; one in several spellings counts as several. A sample makes
those that need no server.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from bench.prove import suite
from bench.prove.figure import Figure

_WANTED: Final = 60
_WITHOUT_SERVER: Final[Mapping[str, Mapping[str, Sequence[str]]]] = {
    "uploads, mounts, slow names, revoked keys": {
        "tests/unit/domain/test_files.py": (
            "test_a_file_that_git_takes_for_a_repository_gets_another_name",
            "test_no_file_is_mounted_in_a_repository",
        ),
        "tests/unit/domain/test_name_lookup.py": (
            "test_slow_names_of_one_domain_hold_up_no_other_name",
            "test_a_thread_that_nobody_waits_for_still_counts",
        ),
        "tests/unit/api/test_key_watch.py": ("",),
        "tests/unit/engine/test_sweep.py": ("",),
        "tests/unit/domain/test_organisation_slots.py": ("test_one_organisation_does_not_take_all_places",),
    },
}
_WITH_SERVER: Final[Mapping[str, Mapping[str, Sequence[str]]]] = {
    "Claude Code and MCP servers": {
        "tests/integration/harness/claude/test_forged_calls.py": ("",),
        "tests/integration/harness/claude/test_floods.py": ("",),
        "tests/integration/harness/test_mcp_limits.py": ("",),
        "tests/integration/harness/claude/test_imports.py": (
            "test_lines_that_nobody_survives_are_refused_or_say_nothing",
            "test_calls_without_a_result_are_few_and_held_without_their_lines",
        ),
    },
    "containers": {
        "tests/integration/environments/test_docker.py": (
            "test_other_users_of_the_machine_do_not_reach_the_sockets",
            "test_another_user_is_not_taken_for_a_container",
            "test_nothing_answers_on_the_socket_any_more",
            "test_a_directory_with_the_engines_socket_is_refused",
        ),
    },
    "hostile repositories": {
        "tests/integration/trees/test_size_limits.py": ("",),
        "tests/integration/trees/test_hostile.py": ("",),
        "tests/integration/trees/test_leaving.py": ("test_no_program_of_the_repository_runs",),
    },
    "rebinding, redirects, lengths": {
        "tests/integration/harness/test_fetching.py": (
            "test_internal_addresses_are_not_reached",
            "test_a_redirect_into_the_inside_is_not_followed",
            "test_a_name_that_changes_its_address_gets_nowhere",
        ),
        "tests/integration/proxy/test_egress.py": ("test_a_request_with_two_lengths_goes_nowhere",),
        "tests/integration/proxy/test_model_proxy.py": ("test_a_request_with_two_lengths_is_refused",),
    },
    "audit, archives, collecting, starving others": {
        "tests/integration/store/test_audit.py": (
            "test_what_was_changed_is_found",
            "test_a_trail_that_was_cut_off_at_its_end_does_not_have_the_saved_head",
            "test_entries_in_another_order_are_found",
        ),
        "tests/integration/store/test_retention.py": ("test_a_message_that_comes_while_it_is_archived",),
        "tests/integration/store/test_deletions.py": ("test_deleted_while_it_is_archived",),
        "tests/integration/store/test_collecting.py": (
            "test_beside_a_turn_nothing_of_its_session_goes",
            "test_a_turn_that_begins_meanwhile_waits_and_finds_them_gone",
            "test_who_begins_with_a_base_while_it_goes_waits",
        ),
        "tests/integration/store/test_starving.py": ("",),
        "tests/integration/engine/test_starving.py": ("",),
    },
}


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    areas = _WITHOUT_SERVER if quick else {**_WITHOUT_SERVER, **_WITH_SERVER}
    counts: dict[str, int] = {}
    for area, files in areas.items():
        paths = [f"{file}::{name}" if name else file for file, names in files.items() for name in names]
        counts[area] = len(await suite.ran(*paths, FOOTPLATE_TESTS_NEED_DOCKER="1"))
        print(f"  {area}: {counts[area]} attempts, none achieved anything", flush=True)
    made = sum(counts.values())
    return Figure(
        text=f"{made} attempts, 0 achieved anything",
        holds=quick or made >= _WANTED,
        details={"attempts": {**counts}},
    )
