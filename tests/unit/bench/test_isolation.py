"""The parts of `core-9`: requests derived from the OpenAPI document, and a timing test that ignores chance."""

import random
from typing import Any

import pytest
from bench.prove.figure import NotHeld
from bench.support import organisation_isolation, timing_side_channel
from bench.support.openapi import OpenApiDocument, Operation

DOCUMENT: dict[str, Any] = {
    "security": [{"bearer": []}],
    "paths": {
        "/v1/sessions/{session_id}": {
            "post": {
                "parameters": [{"name": "session_id", "in": "path"}],
                "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Move"}}}},
            }
        },
        "/v1/poems/{poem_id}": {"get": {"parameters": [{"name": "poem_id", "in": "path"}]}},
        "/v1/agents": {"get": {"parameters": [{"name": "page", "in": "query", "schema": {"type": "string"}}]}},
        "/livez": {"get": {"security": []}},
    },
    "components": {
        "schemas": {
            "Move": {
                "type": "object",
                "required": ["environment_id", "kind", "steps"],
                "properties": {
                    "environment_id": {"type": "string"},
                    "kind": {"enum": ["far", "near"]},
                    "steps": {"type": "array", "minItems": 1, "items": {"$ref": "#/components/schemas/Step"}},
                    "note": {"type": "string"},
                    "vault_id": {"type": "null", "description": "Known, but not supported."},
                },
            },
            "Step": {
                "type": "object",
                "required": ["length"],
                "properties": {"length": {"type": "integer", "minimum": 3}, "back": {"type": "boolean"}},
            },
        }
    },
}
OWN = {"session_id": "sesn_own", "environment_id": "env_own", "agent_id": "agent_own", "turn_id": "turn_own"}


def _operations() -> dict[str, Operation]:
    return {str(operation): operation for operation in OpenApiDocument(DOCUMENT).operations()}


def test_operations_and_minimal_bodies_are_derived() -> None:
    operations = _operations()
    assert [name for name, operation in operations.items() if not operation.needs_key] == ["GET /livez"]
    assert [name for name, operation in operations.items() if operation.is_list] == ["GET /v1/agents"]
    move = operations["POST /v1/sessions/{session_id}"]
    assert move.body is not None
    body = OpenApiDocument(DOCUMENT).minimal_value(move.body, {"environment_id": "env_1"})
    assert body == {"environment_id": "env_1", "kind": "far", "steps": [{"length": 3}]}


def test_every_combination_of_foreign_ids_is_requested() -> None:
    asked = [
        *organisation_isolation.build_requests(
            _operations()["POST /v1/sessions/{session_id}"], OpenApiDocument(DOCUMENT), OWN
        )
    ]
    assert [chosen for _, chosen in asked] == [
        ("session_id",),
        ("environment_id",),
        ("session_id", "environment_id"),
    ]
    question = asked[0][0].with_ids({"environment_id": "env_theirs"})
    _, url, body = question.request()
    assert (url, body["environment_id"]) == ("/v1/sessions/sesn_own", "env_theirs")


def test_a_route_with_an_unknown_id_fails_the_proof() -> None:
    with pytest.raises(NotHeld, match="poem_id"):
        list(
            organisation_isolation.build_requests(
                _operations()["GET /v1/poems/{poem_id}"], OpenApiDocument(DOCUMENT), OWN
            )
        )


def test_a_shift_in_response_times_is_found_and_chance_is_not() -> None:
    chance = random.Random(1)
    one, other = ([chance.gauss(2e-3, 3e-4) for _ in range(400)] for _ in range(2))
    same = timing_side_channel.compare_times(one, other)
    assert abs(same.z) < 4.5
    later = timing_side_channel.compare_times([value + 1.5e-4 for value in one], other)
    assert later.z > 4.5
    assert later.seconds - same.seconds == pytest.approx(1.5e-4)
    assert timing_side_channel.compare_times(other, one).best_guess < 0.6


def test_equal_times_count_as_chance() -> None:
    assert timing_side_channel.compare_times([1.0] * 10, [1.0] * 10).hit_rate == 0.5
    assert timing_side_channel.compare_times([2.0] * 10, [1.0] * 10).hit_rate == 1.0
