"""Label values are limited whatever clients send, and metrics are served only at the configured address."""

import socket
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from footplate.domain.errors import InvalidRequest
from footplate.telemetry import metrics, metrics_server
from footplate.telemetry.metrics_server import MetricsAddress

_open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open


def test_a_hundred_label_values_are_distinct_and_others_are_merged() -> None:
    names = metrics.LabelValues()
    assert [names(f"m{n}") for n in range(100)] == [f"m{n}" for n in range(100)]
    assert names("m100") == metrics.OTHER
    assert names("m7") == "m7"


def test_unknown_tools_share_one_label() -> None:
    assert metrics.tool_label("bash", known={"bash"}) == "bash"
    assert metrics.tool_label("whatever a model made up", known={"bash"}) == metrics.OTHER


def test_a_scraped_gauge_exports_the_current_values_or_none() -> None:
    registry = CollectorRegistry()
    gauge = metrics.ScrapedGauge("sessions", "Sessions.", ["activity"], registry=registry)
    scrapes: tuple[dict[tuple[str, ...], float], ...] = (
        {("queued",): 2.0, ("stalled",): 1.0},
        {("queued",): 0.0},
        {},
    )
    for values in scrapes:
        gauge.read_values = lambda values=values: values
        (family,) = registry.collect()
        assert {(sample.labels["activity"],): sample.value for sample in family.samples} == values


@pytest.mark.parametrize(
    ("text", "default", "address"),
    [
        (None, None, None),
        (None, 8701, MetricsAddress("127.0.0.1", 8701, is_required=False)),
        ("off", 8701, None),
        ("9100", None, MetricsAddress("127.0.0.1", 9100)),
        (":9100", None, MetricsAddress("127.0.0.1", 9100)),
        ("0.0.0.0:9100", None, MetricsAddress("0.0.0.0", 9100)),
        ("[::1]:9100", None, MetricsAddress("::1", 9100)),
    ],
)
def test_an_address_may_be_written_in_several_ways(
    text: str | None, default: int | None, address: MetricsAddress | None
) -> None:
    assert metrics_server.parse_address(text, default_port=default) == address


@pytest.mark.parametrize("text", ["localhost", "127.0.0.1:", "127.0.0.1:http", "127.0.0.1:70000"])
def test_an_invalid_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="is not a valid address"):
        metrics_server.parse_address(text, default_port=None)


def _status(address: str, **headers: str) -> int:
    request = urllib.request.Request(f"http://{address}/metrics", headers=headers)
    try:
        with _open(request, timeout=5) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_metrics_are_served_while_the_process_runs() -> None:
    with capture_logs() as logs, metrics_server.serve_metrics(MetricsAddress("127.0.0.1", 0), "t0ken"):
        address = next(line["address"] for line in logs if line["action"] == "metrics.served")
        bearer = {"authorization": "Bearer t0ken"}
        request = urllib.request.Request(f"http://{address}/metrics", headers=bearer)
        with _open(request, timeout=5) as response:
            text = response.read().decode()
        assert _status(address) == 401
        assert _status(address, authorization="Bearer other") == 401
        assert _status(address, authorization="Basic t0ken") == 401
        assert _status(address, **bearer, host="evil.example") == 403
        assert _status(address, **bearer, origin="https://evil.example") == 403
    assert "# TYPE footplate_turns_total counter" in text
    assert "process_resident_memory_bytes" in text


def test_the_token_is_created_once_and_readable_only_by_its_owner(tmp_path: Path) -> None:
    made = metrics_server.find_token(None, tmp_path / "data")
    assert made is not None
    assert len(made) == 48
    assert metrics_server.find_token(None, tmp_path / "data") == made
    (file,) = (tmp_path / "data").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    assert metrics_server.find_token("given", tmp_path / "other") == "given"
    assert metrics_server.find_token("open", tmp_path / "other") is None


def test_an_address_in_use_is_an_error_only_if_it_was_configured() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            capture_logs() as logs,
            metrics_server.serve_metrics(MetricsAddress("127.0.0.1", port, is_required=False), None),
        ):
            assert [line["action"] for line in logs] == ["metrics.not_served"]
        with (
            pytest.raises(InvalidRequest, match="cannot be served"),
            metrics_server.serve_metrics(MetricsAddress("127.0.0.1", port), None),
        ):
            pass
