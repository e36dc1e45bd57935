"""guard-5 classifies every route that writes, so an added route fails this test until it is classified."""

from bench.support.openapi import Document
from bench.support.roles.attempts import ATTEMPTS, HARMLESS, unclassified
from tests.unit.api.conftest import Api


def test_every_writing_route_is_classified() -> None:
    operations = [str(one) for one in Document(Api().app.openapi()).operations()]
    assert unclassified(operations) == []
    assert unclassified([*operations, "POST /v1/rules"]) == ["POST /v1/rules"]
    assert not {*ATTEMPTS} & {*HARMLESS}
