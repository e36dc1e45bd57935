"""Builds conditions for the states of sessions, and counts sessions by state.

The rules of `domain/sessions/activity.py` become one `case` over columns of the session (`s`) and its head (`h`). Most
sessions are at rest, so a query for any other state starts from the sessions that are not, which have indexes.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from footplate.domain.organisations.principals import Principal
from footplate.domain.pagination import Page
from footplate.domain.ports.api import SessionFilter
from footplate.domain.sessions.activity import ACTIVITY_RULES, COUNTED_STATES, ActivityRule
from footplate.domain.sessions.turns import ActivityState, SessionState
from footplate.store.database import Database
from footplate.store.page_query import build_conditions
from footplate.store.resources.session_search import build_search_filter
from footplate.store.row_mapping import load_activity

_OVERDUE: Final = "h.wake_at < now() - interval '1 minute'"
_LIVE: Final = "w.lease_until > now()"
_PENDING: Final = (
    "(h.turn_id is not null and exists ("
    "select from approvals a where a.session_id = h.session_id and a.closed_at is null and {}))"
)
FACT_CONDITIONS: Final = {
    "is_ended": "h.status = 'terminated'",
    "is_running": "h.status = 'running'",
    "is_retrying": "h.status = 'rescheduling'",
    "has_work": "(h.status <> 'idle' or h.wake)",
    "any_worker_alive": f"exists (select from workers w where {_LIVE})",
    "lacks_backend": "(h.needs_backend is not null and not exists ("
    f"select from workers w where {_LIVE} and h.needs_backend = any (w.backends)))",
    "has_live_holder": f"exists (select from workers w where w.id = h.holder and {_LIVE})",
    "has_lost_holder": "(h.holder is not null and not exists ("
    f"select from workers w where w.id = h.holder and {_LIVE}))",
    "needs_approval": _PENDING.format("not a.question"),
    "asks_question": _PENDING.format("a.question"),
    "is_deferred": "h.deferred is not null",
    "author_disabled": "h.waits_for is not null",
    "has_open_turn": "h.turn_id is not null",
    "is_paused": "not h.playing",
    "paused_by_group": "h.pause_reason is not distinct from 'group'",
    "paused_by_failure": "h.pause_reason is not distinct from 'step_failed'",
    "has_failed": "s.has_failed",
}
"""By fact of a rule. Facts that only distinguish activities of the same state have none."""


def build_case(value_of: Callable[[ActivityRule], str]) -> str:
    """Returns the `case` whose value depends on the first rule that applies to a session. A rule that is a special case
    of the next one with the same value is omitted.
    """
    rules: list[ActivityRule] = []
    for rule in reversed(ACTIVITY_RULES):
        is_implied = (
            bool(rules) and rules[0].facts.items() <= rule.facts.items() and value_of(rules[0]) == value_of(rule)
        )
        if not is_implied:
            rules.insert(0, rule)
    *conditional, last = rules
    assert not last.facts
    branches = [f"when {_all_of(rule)} then {value_of(rule)}" for rule in conditional]
    return f"case {' '.join(branches)} else {value_of(last)} end"


def _all_of(rule: ActivityRule) -> str:
    return " and ".join(
        FACT_CONDITIONS[name] if value else f"not {FACT_CONDITIONS[name]}" for name, value in rule.facts.items()
    )


STATE: Final = build_case(lambda rule: f"'{rule.state}'")
_ACTIVE: Final = "select session_id from active_sessions where organisation = $1"
_OPEN: Final = "select session_id from open_turns where organisation = $1"
_WAITING: Final = "select session_id from session_heads where organisation = $1 and waits_for is not null"
_PAUSED: Final = "select session_id from session_heads where organisation = $1 and not playing"
_SOURCES: Final = {
    SessionState.RUNNING: (_ACTIVE, _OPEN),
    SessionState.NEEDS_YOU: (_OPEN,),
    SessionState.QUEUED: (_ACTIVE, _OPEN, _WAITING, _PAUSED),
    SessionState.PAUSED: (_PAUSED,),
}
"""The sessions that can be in a state, by index. All others are at rest: they have failed or are done."""
_RESTING: Final = {SessionState.FAILED: "s.has_failed", SessionState.DONE: "not s.has_failed"}
"""True for each session of the state, and for others."""


def build_state_condition(states: Sequence[SessionState]) -> str:
    """Returns the condition that a session is in one of the states. Its `case` is a boolean, which the planner expects
    to be true for half of the sessions. It would expect an equation to be true for almost none, and read them all.
    """
    condition = build_case(lambda rule: "true" if rule.state in states else "false")
    if {*states} <= {*_SOURCES}:
        return f"s.id in ({_union(states)}) and {condition}"
    if len(states) == 1:
        return f"{_RESTING[states[0]]} and {condition}"
    return condition


def _is_stuck(rule: ActivityRule) -> str:
    activity = rule.activity.state if rule.activity else None
    if activity is ActivityState.STALLED:
        return "true"
    return f"coalesce({_OVERDUE}, false)" if activity is ActivityState.QUEUED else "false"


STUCK: Final = f"s.id in ({{}}) and {build_case(_is_stuck)}"
"""Sessions that have work and do not move: they are stalled, or have waited too long for a worker."""


def _union(states: Sequence[SessionState]) -> str:
    return " union all ".join(dict.fromkeys(source for state in states for source in _SOURCES[state]))


def build_filters(principal: Principal, where: SessionFilter) -> dict[str, Any]:
    """Returns the filters of `build_page_query`."""
    filters: dict[str, Any] = {
        column: value
        for column, value in {
            "s.agent_id": where.agent_id,
            "s.agent_version": where.agent_version,
            "s.group_id": where.group_id,
            "s.fork ->> 'session_id' = {}": where.forked_from,
            "s.deployment_id": where.deployment_id,
            "s.group_id in (select id from session_groups where parent_session_id = {})": where.parent_id,
            "coalesce(s.owner, s.principal) = {}": where.owner_id,
            "s.project_ids @> array[{}]": where.project_id,
            "(s.harness = {} or s.harness is null)" if where.is_default_harness else "s.harness": where.harness,
        }.items()
        if value is not None
    }
    if where.is_pinned is not None:
        pinned = "exists (select from session_pins n where n.session_id = s.id and n.principal = {})"
        filters[pinned if where.is_pinned else f"not {pinned}"] = principal.id
    if where.statuses:
        filters["h.status"] = [str(status) for status in where.statuses]
    if where.states:
        filters[build_state_condition(where.states)] = ()
    if where.is_stuck:
        filters[STUCK.format(_union([SessionState.QUEUED]))] = ()
    if where.terms is not None:
        filters |= build_search_filter(principal.organisation, where.terms)
    return filters


async def count_states(
    database: Database, principal: Principal, page: Page, where: SessionFilter
) -> dict[SessionState, int]:
    """Counts the sessions that the principal can see, by state. All are counted from an index as if they were at rest,
    and only those that may have work are read.
    """
    wanted = {*(where.states or SessionState)}
    conditions, arguments = build_conditions(
        "sessions", principal, page, build_filters(principal, replace(where, states=()))
    )
    condition = " and ".join(conditions)
    joined = "sessions s join session_heads h on h.session_id = s.id"
    source = joined if where.statuses or where.is_stuck else "sessions s"
    sql = (
        f"select state, has_failed, count(*) from (select {STATE} as state, s.has_failed from {joined}"  # noqa: S608
        f" where {condition} and s.id in ({_union([*_SOURCES])})) busy group by 1, 2 union all"
        f" select null, s.has_failed, count(*) from {source} where {condition} group by 2"
    )
    async with database.connection() as connection:
        rows = await connection.fetch(sql, *arguments)
    counts = dict.fromkeys(SessionState, 0)
    for row in rows:
        at_rest = SessionState.FAILED if row["has_failed"] else SessionState.DONE
        if row["state"] is None:
            counts[at_rest] += row["count"]
        else:
            counts[at_rest] -= row["count"]
            counts[SessionState(row["state"])] += row["count"]
    return {state: count if state in wanted else 0 for state, count in counts.items()}


async def count_activities(database: Database) -> dict[ActivityState, int]:
    """Counts the sessions of all organisations by activity, for the operator's metrics."""
    counts = dict.fromkeys(COUNTED_STATES, 0)
    for row in await database.fetch("activity_counts"):
        counts[load_activity(row)[0].state] += row["sessions"]
    return counts
