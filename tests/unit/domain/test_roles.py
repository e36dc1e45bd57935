"""What roles permit, and which roles of a key count."""

import pytest

from footplate.domain.errors import Forbidden
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.roles import ROLES, Permission, check_permission, permissions_of, restrict_roles


@pytest.mark.parametrize(
    ("key", "owner", "counts"),
    [
        (["member"], ["member"], {"member"}),
        (["admin", "viewer"], ["member"], {"viewer", "member"}),
        (["member"], ["operator"], {"operator"}),
        (["member"], ["viewer", "release"], {"viewer"}),
        (["operator", "approver"], ["member"], {"operator", "approver"}),
        (["policy_admin"], ["admin"], {"policy_admin"}),
        (["release"], ["admin"], set()),
        (["release"], ["release"], {"release"}),
        (["admin"], [], set()),
    ],
)
def test_a_key_has_no_role_that_its_owner_lacks(key: list[str], owner: list[str], counts: set[str]) -> None:
    assert restrict_roles(key, owner) == counts


def test_only_administrators_manage_members() -> None:
    assert {role for role in ROLES if Permission.MANAGE_MEMBERS in permissions_of([role])} == {"admin"}
    assert permissions_of(["unknown"]) == frozenset()


def test_a_refusal_names_the_roles() -> None:
    with pytest.raises(
        Forbidden, match="one of the roles approver, member, admin, and the API key of 'ann' has viewer"
    ):
        check_permission(Principal("org", "key", "ann", frozenset({"viewer"})), Permission.APPROVE)
