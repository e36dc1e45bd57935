"""Every test is in exactly one lane of CI, and every lane is a job of the hosted workflow."""

import re
from collections import Counter
from pathlib import Path

import pytest
from bench.ci.__main__ import find_problems
from bench.ci.lane_process import LaneResult
from bench.ci.lanes import ROOT, Lane, load_lanes, machine_slowdown
from bench.ci.mutations import CI_MUTATIONS, REQUIREMENT_MUTATIONS, Mutation, load_mutations
from bench.prove import registry


def test_every_test_file_is_in_exactly_one_lane() -> None:
    paths = [ROOT / path for lane in load_lanes().values() for path in lane.test_paths]
    assert [str(path) for path in paths if not path.exists()] == []
    found = Counter(
        {test: sum(test.is_relative_to(path) for path in paths) for test in (ROOT / "tests").rglob("test_*.py")}
    )
    assert {str(test.relative_to(ROOT)): number for test, number in found.items() if number != 1} == {}


def test_every_lane_is_a_job() -> None:
    found = re.search(r"^ +lane: \[(.+)\]$", (ROOT / ".github" / "workflows" / "ci.yml").read_text(), re.MULTILINE)
    assert found is not None
    assert found[1].split(", ") == [*load_lanes()]


def test_tests_that_use_processes_or_clocks_are_marked() -> None:
    # `LivePublisher.wait_until_sent` waits for an event, not for a time.
    touches = re.compile(
        r"\.kill\(|SIGKILL|SIGSTOP|sleep\(|monotonic\(|wait_until(?!_sent)|asyncio\.timeout|time\.time\("
    )
    tests = {str(path.relative_to(ROOT)): path.read_text() for path in (ROOT / "tests").rglob("test_*.py")}
    unmarked = [name for name, text in tests.items() if touches.search(text) and "pytest.mark.timing" not in text]
    assert unmarked == []


def test_samples_are_claims_that_exist() -> None:
    arguments = [
        argument for lane in load_lanes().values() if "bench.prove" in lane.command for argument in lane.command
    ]
    named = arguments[arguments.index("bench.prove") + 1 :]
    assert named
    assert [name for name in named if not registry.select(name)] == []


@pytest.mark.parametrize(
    "mutation",
    [mutation for path in (CI_MUTATIONS, REQUIREMENT_MUTATIONS) for mutation in load_mutations(path)],
    ids=lambda mutation: mutation.name,
)
def test_every_mutation_names_existing_code_and_an_existing_test(mutation: Mutation) -> None:
    assert (ROOT / mutation.file).read_text().count(mutation.before) == 1
    if mutation.is_test:
        path, _, name = mutation.caught_by.partition("[")[0].partition("::")
        text = (ROOT / path).read_text()
        assert all(each in text for each in name.split("::"))


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        (LaneResult("x", 0, 9, 129), None),
        (LaneResult("x", 0, 9, 131), "used 131 CPU seconds, more than 1.3 times its budget of 100"),
        (LaneResult("x", 2, 9, 1), "exit code 2"),
        (LaneResult("x", 0, 9, 1, ("sleep 60",)), "a process is still running: sleep 60"),
    ],
)
def test_failures_of_a_lane(result: LaneResult, problem: str | None) -> None:
    found = find_problems(result, Lane("x", (), 100))
    assert len(found) == (problem is not None)
    assert all(str(problem) in text for text in found)


@pytest.mark.parametrize(
    ("used", "slowdown", "fails"),
    [
        ([100] * 9, 1.0, False),
        ([50] * 9, 1.0, False),
        ([150] * 8 + [190], 1.5, False),
        ([150] * 8 + [200], 1.5, True),
        ([100] * 5 + [300] * 4, 1.0, True),
        ([900] * 9, 2.0, True),
        ([140] * 4, 1.0, True),
    ],
)
def test_a_slower_machine_raises_every_budget_and_one_lane_that_grew_raises_none(
    used: list[float], slowdown: float, *, fails: bool
) -> None:
    lanes = {str(number): Lane(str(number), (), 100) for number in range(len(used))}
    assert machine_slowdown(dict(zip(lanes, used, strict=True)), lanes) == slowdown
    assert (find_problems(LaneResult("x", 0, 9, used[-1]), Lane("x", (), 100), slowdown) != []) == fails


def test_an_unknown_key_in_the_lanes_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "lanes.toml"
    path.write_text('[x]\ncommand = "true"\ncpu_seconds = 1\ncpu = 1\n')
    with pytest.raises(TypeError, match="cpu"):
        load_lanes(path)
