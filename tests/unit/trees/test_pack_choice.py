"""Merging keeps the chain of packs short for every snapshot of a session of any length, at a cost that grows slowly."""

import pytest

from footplate.trees.snapshots.pack_consolidation import MAX_CHAIN_PACKS, choose_first_pack


@pytest.mark.parametrize(("snapshots", "copies"), [(100, 4), (1_000, 5), (10_000, 9)])
def test_a_chain_stays_short_and_each_step_is_copied_a_few_times(snapshots: int, copies: int) -> None:
    steps: list[int] = []
    copied = 0
    for _ in range(snapshots):
        steps.append(1)
        if len(steps) == MAX_CHAIN_PACKS:
            first = choose_first_pack(steps)
            assert len(steps) - first >= 3
            steps[first:] = [sum(steps[first:])]
            copied += steps[-1]
        assert len(steps) < MAX_CHAIN_PACKS
    assert sum(steps) == snapshots
    assert copied <= copies * snapshots


@pytest.mark.parametrize(
    ("steps", "first"),
    [
        ([1] * 8, 0),
        ([15, *[1] * 7], 1),
        ([14, *[1] * 7], 1),
        ([13, *[1] * 7], 0),
        ([512, 128, 64, 32, 8, 4, 2, 1], 4),
        ([1000, 1, 1, 1, 1, 1, 1, 1, 1, 1], 1),
    ],
)
def test_packs_of_about_the_same_size_are_merged(steps: list[int], first: int) -> None:
    assert choose_first_pack(steps) == first
