"""A second attack, on what the first did not try: at least 60 attempts in nine areas, and none of them achieves anything.

Each attempt is a test against the real part: git, PostgreSQL, Temporal, sockets, threads, the recorder of Claude Code. It
fails when the attacker gets what the attempt is after. A sample makes those that need no server.
"""

from typing import Final

from bench.prove import suite
from bench.prove.figure import Figure

_WANTED: Final = 60
_WITHOUT_SERVER: Final = {
    "uploads and mounts": ("tests/unit/domain/test_files.py",),
    "slow names": ("tests/unit/domain/test_name_lookup.py",),
    "streams of revoked keys": ("tests/unit/api/test_key_watch.py",),
}
_WITH_SERVER: Final = {
    "Claude Code from inside": (
        "tests/integration/harness/claude/test_forged_calls.py",
        "tests/integration/harness/claude/test_floods.py",
        "tests/integration/harness/test_mcp_limits.py",
    ),
    "containers from inside and beside": (
        "tests/integration/environments/test_docker.py::test_other_users_of_the_machine_do_not_reach_the_sockets",
        "tests/integration/environments/test_docker.py::test_another_user_is_not_taken_for_a_container",
        "tests/integration/environments/test_docker.py::test_nothing_answers_on_the_socket_any_more",
        "tests/integration/environments/test_docker.py::test_a_directory_with_the_engines_socket_is_refused",
    ),
    "imported transcripts": ("tests/integration/harness/claude/test_imports.py",),
    "hostile repositories": (
        "tests/integration/trees/test_size_limits.py",
        "tests/integration/trees/test_hostile.py",
        "tests/integration/trees/test_leaving.py::test_no_program_of_the_repository_runs",
    ),
    "rebinding, redirects, lengths": (
        "tests/integration/harness/test_fetching.py",
        "tests/integration/proxy/test_egress.py::test_a_request_with_two_lengths_goes_nowhere",
        "tests/integration/proxy/test_model_proxy.py::test_a_request_with_two_lengths_is_refused",
    ),
    "audit, archives, starving others": (
        "tests/integration/store/test_audit.py",
        "tests/integration/store/test_starving.py",
        "tests/integration/store/test_retention.py",
        "tests/integration/engine/test_starving.py",
        "tests/unit/engine/test_sweep.py",
        "tests/unit/domain/test_organisation_slots.py",
    ),
}


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    areas = _WITHOUT_SERVER if quick else {**_WITHOUT_SERVER, **_WITH_SERVER}
    counts: dict[str, int] = {}
    for area, paths in areas.items():
        counts[area] = len(await suite.ran(*paths, FOOTPLATE_TESTS_NEED_DOCKER="1"))
        print(f"  {area}: {counts[area]} attempts, none achieved anything", flush=True)
    made = sum(counts.values())
    return Figure(
        text=f"{made} attempts in {len(counts)} areas, 0 achieved anything",
        holds=quick or made >= _WANTED,
        details={"attempts": {**counts}},
    )
