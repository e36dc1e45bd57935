"""Footplate's sockets inside a sandbox without a network: reachable by path and by port, closed with the turn."""

import importlib
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from footplate.domain.agents.environment_config import Backend, EnvironmentConfig
from footplate.domain.network.command_network_access import Network
from footplate.domain.ports.engine import ModelGrant, OpenEnvironment, OpenRequest
from footplate.domain.ports.harness import Endpoint
from footplate.environments import programs
from footplate.environments.factory import SandboxFactory
from footplate.environments.sandbox.probe import SandboxProbe
from footplate.lease_clock import lease_clock
from footplate.proxy.model_proxy import ModelProxy
from footplate.testing import ScriptedModel, replies, reply, text

UID = 65_520
KEY = "the-real-key-of-the-account"
REQUEST_PROGRAM = """
import http.client, json, socket, sys
where, token, times = sys.argv[1], sys.argv[2], int(sys.argv[3])
if where.startswith("/"):
    connection = http.client.HTTPConnection("model")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(where)
else:
    connection = http.client.HTTPConnection(where)
body = {"model": "claude-x", "max_tokens": 9, "messages": [{"role": "user", "content": "[[script:hi]]" + "x" * 300000}]}
for _ in range(times):
    connection.request("POST", "/anthropic/v1/messages", json.dumps(body), {"x-api-key": token})
    answer = connection.getresponse()
    print(answer.status, json.loads(answer.read()).get("content"))
"""


@asynccontextmanager
async def open_turn(
    tmp_path: Path, host: SandboxProbe | None, *, network: Network | None = None
) -> AsyncIterator[tuple[OpenEnvironment, ModelGrant, ScriptedModel]]:
    if host is None:
        pytest.skip("no sandbox can be made on this machine")
    backend = Backend(name="sandbox", network=network or Network(), can_limit_network=True)
    environments = SandboxFactory(tmp_path, backend, host.host, uid=UID)
    hi = replies(reply(text("hi"), repeat=True))
    async with ScriptedModel({"hi": hi}) as model, ModelProxy({"anthropic": Endpoint(KEY, model.url)}) as proxy:
        deadline = lease_clock() + 60
        grant = proxy.grant(deadline=deadline)
        environment = await environments.open_environment(
            OpenRequest(
                organisation="org",
                session_id="s",
                deadline=deadline,
                variables={},
                config=EnvironmentConfig(),
                models=grant,
            )
        )
        try:
            yield environment, grant, model
        finally:
            await environment.aclose()
            await grant.aclose()
            assert [*(tmp_path / "leases").iterdir()] == []


async def send_requests(environment: OpenEnvironment, where: str, token: str, times: int = 1) -> list[str]:
    result = await environment.run(["python3", "-c", REQUEST_PROGRAM, where, token, str(times)])
    return (result.stdout + result.stderr).decode().splitlines()


async def test_a_sandbox_without_a_network_reaches_the_model(tmp_path: Path, sandbox_host: SandboxProbe | None) -> None:
    async with open_turn(tmp_path, sandbox_host) as (environment, grant, model):
        token = grant.endpoints["anthropic"].api_key
        responses = ["200 [{'type': 'text', 'text': 'hi'}]"] * 3
        assert await send_requests(environment, "/run/footplate-proxy/model.sock", token, 3) == responses
        assert await send_requests(environment, "127.0.0.1:3129", token, 3) == responses
        assert await send_requests(environment, "127.0.0.1:3129", "guessed") == ["401 None"]
        assert {record.headers["x-api-key"] for record in model.requests()} == {KEY}


async def test_a_killed_port_forwarder_is_restarted(tmp_path: Path, sandbox_host: SandboxProbe | None) -> None:
    async with open_turn(tmp_path, sandbox_host) as (environment, grant, _):
        token = grant.endpoints["anthropic"].api_key
        for _ in range(3):
            assert await send_requests(environment, "127.0.0.1:3129", token) == ["200 [{'type': 'text', 'text': 'hi'}]"]
            await environment.run(["bash", "-c", "trap '' TERM; kill -9 -1"])


def test_small_chunks_are_sent_without_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    # Inside a sandbox, the module is not part of a package.
    monkeypatch.syspath_prepend(str(Path(programs.__file__).parent))
    loopback_port_forwarder = importlib.import_module("loopback_port_forwarder")
    ((listener, _),) = loopback_port_forwarder.listen([(0, "/nowhere")]).values()
    with socket.create_connection(listener.getsockname()):
        accepted = loopback_port_forwarder.accept(listener)
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
        accepted.close()
    listener.close()


async def test_the_sockets_cannot_be_changed_from_inside(tmp_path: Path, sandbox_host: SandboxProbe | None) -> None:
    async with open_turn(tmp_path, sandbox_host) as (environment, grant, _):
        script = (
            "cd /run/footplate-proxy; rm model.sock; mv model.sock x; chmod 777 .; test -S model.sock && echo there"
        )
        result = await environment.shell(script, timeout=10)
        assert result.stdout == b"there\n"
        token = grant.endpoints["anthropic"].api_key
        assert await send_requests(environment, "/run/footplate-proxy/model.sock", token) == [
            "200 [{'type': 'text', 'text': 'hi'}]"
        ]


async def test_no_port_is_forwarded_in_the_workers_network(tmp_path: Path, sandbox_host: SandboxProbe | None) -> None:
    async with open_turn(tmp_path, sandbox_host, network=Network("open")) as (environment, grant, _):
        token = grant.endpoints["anthropic"].api_key
        assert "Connection refused" in "\n".join(await send_requests(environment, "127.0.0.1:3129", token))
        assert (await send_requests(environment, "/run/footplate-proxy/model.sock", token))[0].startswith("200")
