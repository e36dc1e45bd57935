"""The claims on roles and isolation know every route and command, so an added one fails here until they know it."""

from collections import defaultdict
from pathlib import Path

from bench.support import organisation_isolation
from bench.support.openapi import OpenApiDocument
from bench.support.roles import command_runs
from bench.support.roles.published_table import PublishedTable
from bench.support.roles.rule_weakening_attempts import ATTEMPTS_BY_ROUTE, HARMLESS_ROUTES, find_unclassified_routes
from tests.unit.api.conftest import Api


def test_every_writing_route_is_classified() -> None:
    operations = [str(one) for one in OpenApiDocument(Api().app.openapi()).operations()]
    assert find_unclassified_routes(operations) == []
    assert find_unclassified_routes([*operations, "POST /v1/rules"]) == ["POST /v1/rules"]
    assert not {*ATTEMPTS_BY_ROUTE} & {*HARMLESS_ROUTES}


def test_every_reference_in_a_request_is_known() -> None:
    document = OpenApiDocument(Api().app.openapi())
    for operation in document.operations():
        organisation_isolation.id_names(operation, document)


def test_every_command_has_arguments() -> None:
    arguments = command_runs.build_arguments(Path("home"), defaultdict(str))
    table = PublishedTable.read()
    assert [
        each for each in command_runs.list_commands() if table.command_permissions(each) and each not in arguments
    ] == []
