"""Label values are limited whatever clients send, and metrics are served only at the configured address."""

import socket
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from footplate.domain.errors import InvalidRequest
from footplate.telemetry import metrics, serving
from footplate.telemetry.serving import Address

_open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open


def test_a_hundred_names_are_kept_and_the_rest_is_folded() -> None:
    names = metrics.Names()
    assert [names(f"m{n}") for n in range(100)] == [f"m{n}" for n in range(100)]
    assert names("m100") == metrics.OTHER
    assert names("m7") == "m7"


def test_unknown_tools_fold_into_one() -> None:
    assert metrics.tool_label("bash", known={"bash"}) == "bash"
    assert metrics.tool_label("whatever a model made up", known={"bash"}) == metrics.OTHER


@pytest.mark.parametrize(
    ("text", "default", "address"),
    [
        (None, None, None),
        (None, 8701, Address("127.0.0.1", 8701, must=False)),
        ("off", 8701, None),
        ("9100", None, Address("127.0.0.1", 9100)),
        (":9100", None, Address("127.0.0.1", 9100)),
        ("0.0.0.0:9100", None, Address("0.0.0.0", 9100)),
        ("[::1]:9100", None, Address("::1", 9100)),
    ],
)
def test_an_address_may_be_written_in_several_ways(
    text: str | None, default: int | None, address: Address | None
) -> None:
    assert serving.parse(text, default_port=default) == address


@pytest.mark.parametrize("text", ["localhost", "127.0.0.1:", "127.0.0.1:http", "127.0.0.1:70000"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="is not a valid address"):
        serving.parse(text, default_port=None)


def _status(address: str, **headers: str) -> int:
    request = urllib.request.Request(f"http://{address}/metrics", headers=headers)
    try:
        with _open(request, timeout=5) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_metrics_are_served_while_the_process_runs() -> None:
    with capture_logs() as logs, serving.served(Address("127.0.0.1", 0), "t0ken"):
        address = next(line["address"] for line in logs if line["action"] == "metrics.served")
        bearer = {"authorization": "Bearer t0ken"}
        request = urllib.request.Request(f"http://{address}/metrics", headers=bearer)
        with _open(request, timeout=5) as answer:
            text = answer.read().decode()
        assert _status(address) == 401
        assert _status(address, authorization="Bearer other") == 401
        assert _status(address, authorization="Basic t0ken") == 401
        assert _status(address, **bearer, host="evil.example") == 403
        assert _status(address, **bearer, origin="https://evil.example") == 403
    assert "# TYPE footplate_turns_total counter" in text
    assert "process_resident_memory_bytes" in text


def test_the_token_is_made_once_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    made = serving.find_token(None, tmp_path / "data")
    assert made is not None
    assert len(made) == 48
    assert serving.find_token(None, tmp_path / "data") == made
    (file,) = (tmp_path / "data").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    assert serving.find_token("given", tmp_path / "other") == "given"
    assert serving.find_token("open", tmp_path / "other") is None


def test_a_taken_address_is_an_error_only_if_it_was_asked_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with capture_logs() as logs, serving.served(Address("127.0.0.1", port, must=False), None):
            assert [line["action"] for line in logs] == ["metrics.not_served"]
        with pytest.raises(InvalidRequest, match="cannot be served"), serving.served(Address("127.0.0.1", port), None):
            pass
