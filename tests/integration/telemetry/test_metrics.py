"""Labels stay few, whatever clients send; metrics are served where the operator says, and nowhere else."""

import socket
import urllib.error
import urllib.request

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
    with pytest.raises(InvalidRequest, match="is no address"):
        serving.parse(text, default_port=None)


def test_metrics_are_served_while_the_process_runs() -> None:
    with capture_logs() as logs, serving.served(Address("127.0.0.1", 0)):
        address = next(line["address"] for line in logs if line["action"] == "metrics.served")
        with _open(f"http://{address}/metrics", timeout=5) as answer:
            text = answer.read().decode()
    assert "# TYPE footplate_turns_total counter" in text
    assert "process_resident_memory_bytes" in text


def test_a_taken_address_is_an_error_only_if_it_was_asked_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with capture_logs() as logs, serving.served(Address("127.0.0.1", port, must=False)):
            assert [line["action"] for line in logs] == ["metrics.not_served"]
        with pytest.raises(InvalidRequest, match="cannot be served"), serving.served(Address("127.0.0.1", port)):
            pass
