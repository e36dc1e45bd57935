"""Limits of request bodies, JSON, streams and connections. A request above a limit is refused with its name."""

import json
import re
from pathlib import Path
from typing import Any

import httpx2
import pytest
from anthropic import AsyncAnthropic
from hypothesis import given
from hypothesis import strategies as st

from footplate.api.errors import LimitExceeded
from footplate.api.requests.json_limits import check_json
from footplate.api.server.connection_limits import ConnectionSlots, client_network
from footplate.api.stream_and_body_quotas import UNCOUNTED_BYTES, KeyQuotas
from footplate.domain.network.request_limits import MIB, RequestLimits, setting_name

from .conftest import Api, make_client
from .test_all_routes import check_error

SMALL = RequestLimits(json_depth=8, json_nodes=100)
_JSON = st.recursive(
    st.none() | st.text(alphabet='a"\\{}[],:\n\u00e9', max_size=8) | st.integers(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(alphabet='"\\{[', max_size=3), inner),
    max_leaves=150,
)


def _measure(value: Any) -> tuple[int, int]:
    """Returns the number of values and the depth."""
    if not isinstance(value, (dict, list)):
        return 1, 0
    inner = [_measure(item) for item in (value.values() if isinstance(value, dict) else value)]
    return 1 + sum(count for count, _ in inner), 1 + max((depth for _, depth in inner), default=0)


@given(_JSON)
def test_json_is_measured_without_being_parsed(value: Any) -> None:
    count, depth = _measure(value)
    for raw in (json.dumps(value).encode(), json.dumps(value, ensure_ascii=False, indent=1).encode()):
        if _is_refused(raw):
            # An empty container counts as two values.
            assert count * 2 > SMALL.json_nodes or depth > SMALL.json_depth
        else:
            assert count <= SMALL.json_nodes
            assert depth <= SMALL.json_depth


def _is_refused(raw: bytes) -> bool:
    try:
        check_json(raw, SMALL)
    except LimitExceeded:
        return True
    return False


@pytest.mark.parametrize("size", [65_530, 65_535, 65_536, 65_537, 131_071])
@pytest.mark.parametrize("end", [b'\\\\"', b'\\\\\\""', b'\\""', b'"'])
def test_strings_may_cross_scan_windows(size: int, end: bytes) -> None:
    """The scan reads 64 KiB at a time."""
    head = b'{"a":"' + b"[" * (size - 6 - len(end))
    assert check_json(head + end + b',"b":[' + b"1," * 40 + b"1]}", SMALL) < 100
    with pytest.raises(LimitExceeded, match="nested deeper than 8"):
        check_json(head + end + b',"b":' + b"[" * 9 + b"]" * 9 + b"}", SMALL)
    with pytest.raises(LimitExceeded, match="more than 100 JSON values"):
        check_json(head + end + b',"b":[' + b"{}," * 100 + b"1]}", SMALL)


async def test_a_body_of_empty_objects_is_refused_before_it_is_parsed(http: httpx2.AsyncClient) -> None:
    body = b'{"name":"a","model":"m","tools":[' + b"{}," * 20_000 + b"{}]}"
    error = check_error(await http.post("/v1/agents", content=body), 400, "false")
    assert (error["field"], error["docs"]) == ("body", "docs/errors.md#limit_exceeded")
    assert "more than 20000 JSON values" in error["message"]
    assert "FOOTPLATE_JSON_NODES" in error["help"]


async def test_each_route_has_its_size_limit(api: Api) -> None:
    api.app = api.build(limits=RequestLimits(json_bytes=1024, message_bytes=4096))
    async with make_client(api.app) as http:
        error = check_error(await http.post("/v1/agents", content=b" " * 1025), 413, "false")
        assert "FOOTPLATE_JSON_BYTES" in error["help"]
        check_error(await http.post("/v1/sessions/sesn_1/events", content=b" " * 1025), 400, "false")
        error = check_error(await http.post("/v1/sessions/sesn_1/events", content=b" " * 4097), 413, "false")
        assert "FOOTPLATE_MESSAGE_BYTES" in error["help"]


async def test_large_bodies_are_parsed_and_their_memory_is_released(api: Api) -> None:
    async with make_client(api.app) as http:
        body = {"name": "a", "model": "m", "system": "x" * 90_000}
        assert (await http.post("/v1/agents", json=body)).status_code == 200
        check_error(await http.post("/v1/agents", json={**body, "unknown": 1}), 400, "false")
    assert api.app.state.services.quotas.buffered_bytes == 0


def test_memory_for_bodies_is_shared_by_keys() -> None:
    limits = RequestLimits(buffered_bytes=3 * MIB, buffered_bytes_per_key=2 * MIB)
    quotas = KeyQuotas(limits)
    small, first, second = (quotas.open_reservation(key) for key in ("a", "a", "b"))
    small.add(UNCOUNTED_BYTES)
    assert quotas.buffered_bytes == 0
    for _ in range(4):
        first.add(MIB // 2)
    with pytest.raises(LimitExceeded, match="bodies that are in progress with this API key exceed 2 MiB"):
        first.add(MIB)
    second.add(MIB)
    with pytest.raises(LimitExceeded, match="bodies that are in progress on this server exceed 3 MiB"):
        second.add(MIB // 2)
    for reservation in (small, first, second):
        reservation.release()
        reservation.release()
    assert quotas.buffered_bytes == 0


async def test_streams_of_one_key_are_limited(api: Api, sdk: AsyncAnthropic) -> None:
    agent = await sdk.beta.agents.create(name="A", model="m")
    environment = await sdk.beta.environments.create(name="E")
    session = await sdk.beta.sessions.create(agent=agent.id, environment_id=environment.id)
    app = api.build(limits=RequestLimits(streams_per_key=2))
    quotas = app.state.services.quotas
    key_id = (await api.keys.authenticate("secret-a")).id
    async with make_client(app) as http:
        with quotas.acquire_stream(key_id), quotas.acquire_stream(key_id):
            error = check_error(await http.get(f"/v1/sessions/{session.id}/events/stream"), 429, "true")
            assert "This API key already has 2 open streams" in error["message"]
            assert "FOOTPLATE_STREAMS_PER_KEY" in error["help"]
        for _ in range(3):
            assert (await http.get(f"/v1/sessions/{session.id}/events/stream")).status_code == 200
        check_error(await http.get("/v1/sessions/sesn_none/events/stream"), 404, "false")
    assert quotas.streams == 0


def test_the_total_number_of_streams_is_limited() -> None:
    quotas = KeyQuotas(RequestLimits(streams=2))
    slots = [quotas.acquire_stream(key) for key in ("a", "b")]
    with pytest.raises(LimitExceeded, match="The server already has 2 open streams"):
        quotas.acquire_stream("c")
    slots[0].release()
    slots[0].release()
    quotas.acquire_stream("c")


def test_connections_are_counted_by_address() -> None:
    slots = ConnectionSlots(RequestLimits(connections=3, connections_per_address=2))
    first, _ = slots.acquire("10.0.0.1"), slots.acquire("10.0.0.1")
    with pytest.raises(LimitExceeded, match=r"10\.0\.0\.1 already has 2 open connections"):
        slots.acquire("10.0.0.1")
    slots.acquire("10.0.0.2")
    with pytest.raises(LimitExceeded, match="The server already has 3 open connections"):
        slots.acquire("10.0.0.3")
    first.release()
    first.release()
    assert slots.used == 2
    slots.acquire(None)


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("not an address", "not an address"),
    ],
)
def test_an_ipv6_client_is_counted_by_its_network(address: str, network: str) -> None:
    assert client_network(address) == network


def test_the_page_lists_every_limit() -> None:
    page = Path(__file__).parents[3].joinpath("docs/limits.md").read_text()
    rows = dict(re.findall(r"^\|[^|]+\| `(FOOTPLATE_\w+)` \| (\d+)", page, re.MULTILINE))
    for name, field in RequestLimits.model_fields.items():
        assert int(rows[setting_name(name)]) == field.default, name
