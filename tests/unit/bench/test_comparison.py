"""The judgement of fast-8 finds every row in which Footplate is not ahead of a peer, and the table shows them."""

from dataclasses import replace

import pytest
from bench.claims.fast.comparison_with_peers import judge_results
from bench.compare.measurements import KillResult, Plan, SystemResult
from bench.compare.page import render_table
from bench.compare.peer import CallRecord

OURS = SystemResult(
    name="Footplate",
    version="1",
    first_token_ms=(50, 40),
    sessions_per_second=6,
    cpu_ms_per_session=300,
    kill=KillResult(
        tool_ended_after=0.3, continued_after=8, ran_again=False, record=CallRecord("settled", "outcome unknown")
    ),
)
PEER = SystemResult(
    name="opencode",
    version="2",
    first_token_ms=(200, 190),
    sessions_per_second=5,
    cpu_ms_per_session=200,
    kill=KillResult(tool_ended_after=None, continued_after=None, ran_again=False, record=CallRecord("open", "running")),
)


def test_a_system_that_leads_in_every_row_holds() -> None:
    assert judge_results([OURS, PEER], quick=False).holds


@pytest.mark.parametrize(
    ("ours", "peer", "row"),
    [
        (OURS, replace(PEER, first_token_ms=(50, 190)), "first token of turn 1"),
        (OURS, replace(PEER, first_token_ms=(200, 30)), "first token of turn 2"),
        (OURS, replace(PEER, sessions_per_second=6.1), "sessions/s"),
        (OURS, replace(PEER, kill=replace(PEER.kill, tool_ended_after=0.2)), "the end of the tool"),
        (OURS, replace(PEER, kill=replace(PEER.kill, continued_after=1)), "continuing by itself"),
        (replace(OURS, kill=replace(OURS.kill, tool_ended_after=None)), PEER, "the end of the tool"),
        (replace(OURS, kill=replace(OURS.kill, ran_again=True)), PEER, "continuing by itself"),
        (replace(OURS, kill=replace(OURS.kill, record=PEER.kill.record)), PEER, "the record of the call"),
    ],
)
def test_a_row_without_a_lead_is_named(ours: SystemResult, peer: SystemResult, row: str) -> None:
    figure = judge_results([ours, peer], quick=False)
    assert not figure.holds
    assert figure.summary.endswith(f"not ahead of: opencode in {row}")


def test_a_small_sample_is_not_judged_on_speed() -> None:
    assert judge_results([OURS, replace(PEER, first_token_ms=(1, 1), sessions_per_second=100)], quick=True).holds


def test_only_opencodes_session_rate_is_a_limit() -> None:
    assert judge_results([OURS, replace(PEER, name="langgraph dev", sessions_per_second=10)], quick=False).holds


def test_a_variant_of_footplate_is_no_peer() -> None:
    assert judge_results([OURS, replace(OURS, name="Footplate, project checkout"), PEER], quick=False).holds


def test_running_the_command_again_is_no_continuation() -> None:
    again = replace(PEER, kill=replace(PEER.kill, continued_after=1, ran_again=True))
    assert judge_results([OURS, again], quick=False).holds
    assert "| it runs the command a second time |" in render_table([OURS, again], Plan.of(quick=True))


def test_the_table_shows_the_state_after_a_kill() -> None:
    table = render_table([OURS, PEER], Plan.of(quick=True))
    assert "| dead after 0.3 s | alive after 5 s |" in table
    assert "| yes, 8.0 s after the restart began | no |" in table
