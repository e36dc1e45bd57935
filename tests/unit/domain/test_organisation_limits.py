"""Which limits apply to a member, and which deferred turns may start."""

import pytest

from footplate.domain.organisations.limits import (
    EACH_MEMBER,
    ORGANISATION,
    DeferredTurn,
    LimitName,
    OrganisationLimitExceeded,
    OrganisationLimits,
    choose_turns_to_start,
)
from footplate.domain.organisations.principals import Principal

ANN, BOB = (Principal("acme", f"memb_{name}", name, frozenset()) for name in ("ann", "bob"))
TURNS = LimitName.CONCURRENT_TURNS
SESSIONS = LimitName.SESSIONS


def limits(**own: int) -> OrganisationLimits:
    return OrganisationLimits("acme", own={(TURNS, scope): value for scope, value in own.items()})


def test_a_member_has_its_own_limit_or_that_of_each_member() -> None:
    found = limits(each_member=5, memb_ann=8, organisation=10)
    assert [(each.value, each.member) for each in found.find_applied(TURNS, ANN)] == [(8, ANN), (10, None)]
    assert [each.value for each in found.find_applied(TURNS, BOB)] == [5, 10]
    assert found.find_applied(SESSIONS, ANN) == []
    assert (found.has_limit(TURNS), found.has_limit(SESSIONS)) == (True, False)


def test_the_operators_limit_cannot_be_exceeded() -> None:
    operator = {(SESSIONS, ORGANISATION): 10, (SESSIONS, EACH_MEMBER): 4}
    own = {(SESSIONS, ORGANISATION): 20, (SESSIONS, EACH_MEMBER): 3, (SESSIONS, ANN.id): 9}
    found = OrganisationLimits("acme", operator, own)
    assert [found.value(SESSIONS, scope) for scope in (ORGANISATION, EACH_MEMBER, ANN.id, BOB.id)] == [10, 3, 4, 3]


def test_a_limit_counts_the_organisation_or_one_member() -> None:
    whole = OrganisationLimits("acme", own={(SESSIONS, ORGANISATION): 5}).find_applied(SESSIONS, ANN)[0]
    whole.check({ANN.id: 1, BOB.id: 2, None: 1})
    with pytest.raises(OrganisationLimitExceeded, match="of the organisation is reached: 5 sessions") as refused:
        whole.check({ANN.id: 1, BOB.id: 2, None: 1}, adding=2)
    assert (refused.value.retry_after, refused.value.should_retry) == (60, False)
    own = OrganisationLimits("acme", own={(SESSIONS, ANN.id): 1}).find_applied(SESSIONS, ANN)[0]
    own.check({BOB.id: 2})
    with pytest.raises(OrganisationLimitExceeded, match="of the member 'ann' is reached: 1 sessions"):
        own.check({ANN.id: 1})


@pytest.mark.parametrize(
    ("waiting", "running", "found", "expected"),
    [
        ("ooo", {ANN.id: 1}, limits(organisation=3), "01"),
        ("ooo", {ANN.id: 3}, limits(organisation=3), ""),
        ("ooo", {ANN.id: 9}, limits(), "012"),
        ("aab", {}, limits(each_member=1), "02"),
        ("aab", {ANN.id: 1}, limits(each_member=1), "2"),
        ("aab", {BOB.id: 1}, limits(each_member=2, organisation=2), "0"),
        ("oab", {}, limits(each_member=1, organisation=2), "01"),
    ],
)
def test_the_oldest_turns_start_as_far_as_the_limits_permit(
    waiting: str, running: dict[str | None, int], found: OrganisationLimits, expected: str
) -> None:
    scopes = {"o": ORGANISATION, "a": ANN.id, "b": BOB.id}
    deferred = [DeferredTurn(str(number), scopes[scope]) for number, scope in enumerate(waiting)]
    assert choose_turns_to_start(deferred, running, found) == list(expected)
