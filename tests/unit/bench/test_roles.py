"""guard-5 classifies every route that writes, so an added route fails this test until it is classified."""

from bench.support.openapi import OpenApiDocument
from bench.support.roles.rule_weakening_attempts import ATTEMPTS_BY_ROUTE, HARMLESS_ROUTES, find_unclassified_routes
from tests.unit.api.conftest import Api


def test_every_writing_route_is_classified() -> None:
    operations = [str(one) for one in OpenApiDocument(Api().app.openapi()).operations()]
    assert find_unclassified_routes(operations) == []
    assert find_unclassified_routes([*operations, "POST /v1/rules"]) == ["POST /v1/rules"]
    assert not {*ATTEMPTS_BY_ROUTE} & {*HARMLESS_ROUTES}
