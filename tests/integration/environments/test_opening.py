"""A turn's environment is opened as its session's configuration defines it, with the documented paths."""

import socket
from dataclasses import replace
from pathlib import Path

import pytest
from tests.integration.environments.conftest import UID

from footplate.domain.addresses import Reach
from footplate.domain.environments import Backend, EnvironmentConfig
from footplate.domain.errors import InvalidRequest
from footplate.domain.networks import Network
from footplate.domain.running import Environments
from footplate.environments.guardian import clock
from footplate.environments.opening import Sandboxed, Unsandboxed
from footplate.environments.sandbox.probe import Found
from footplate.proxy.egress import AllowListProxy
from footplate.proxy.models import ModelProxy

OPEN = Backend(name="sandbox", network=Network("open"), cuts_network=True, allow_lists=True)
CLOSED = replace(OPEN, network=Network())
ASK = "curl -s -i --noproxy '' -x http://127.0.0.1:3128 http://127.0.0.1:{}/"
INTERFACES = "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' ' | sort | tr '\\n' ' '"


async def said(environments: Environments, config: EnvironmentConfig, command: str) -> str:
    async with ModelProxy({}) as proxy:
        models = proxy.grant(deadline=clock() + 60)
        try:
            opened = await environments.open(
                "default", "sesn_1", deadline=clock() + 60, variables={}, config=config, models=models
            )
            try:
                result = await opened.shell(command, timeout=30)
            finally:
                await opened.aclose()
        finally:
            await models.aclose()
    return (result.stdout + result.stderr).decode().strip()


def sandboxed(data: Path, found: Found | None, backend: Backend) -> Sandboxed:
    if found is None:
        pytest.skip("no sandbox can be made on this machine")
    return Sandboxed(data, backend, found.host, uid=UID, egress=AllowListProxy(Reach(["127.0.0.1"])))


async def test_an_environment_narrows_the_operator_s_network(tmp_path: Path, sandbox_host: Found | None) -> None:
    environments = sandboxed(tmp_path, sandbox_host, OPEN)
    ours = sorted(name for _, name in socket.if_nameindex())
    assert (await said(environments, EnvironmentConfig(), INTERFACES)).split() == ours
    assert await said(environments, EnvironmentConfig(limited=True), INTERFACES) == "lo"


async def test_what_a_worker_cannot_hold_to_it_does_not_open(tmp_path: Path, sandbox_host: Found | None) -> None:
    limited, listed = EnvironmentConfig(limited=True), EnvironmentConfig(limited=True, hosts=("example.com",))
    backend = Backend(name="unsandboxed", network=Network("open"), cuts_network=False)
    bare = Unsandboxed(tmp_path, backend)
    with pytest.raises(InvalidRequest, match="cannot limit the network"):
        await said(bare, limited, "true")
    with pytest.raises(InvalidRequest, match="is not a host that the operator allows"):
        await said(sandboxed(tmp_path, sandbox_host, CLOSED), listed, "true")


@pytest.mark.parametrize("operator", [Network("open"), Network.allow(["127.0.0.1:80", "127.0.0.1:81"])])
async def test_an_environment_s_hosts_are_all_that_it_reaches(
    tmp_path: Path, sandbox_host: Found | None, operator: Network
) -> None:
    environments = sandboxed(tmp_path, sandbox_host, replace(OPEN, network=operator))
    config = EnvironmentConfig(limited=True, hosts=("127.0.0.1:81",))
    assert await said(environments, config, INTERFACES) == "lo"
    answers = [await said(environments, config, ASK.format(port)) for port in (80, 81)]
    assert [answer.split()[1] for answer in answers] == ["403", "502"]


async def test_promised_paths(tmp_path: Path, sandbox_host: Found | None) -> None:
    environments = sandboxed(tmp_path, sandbox_host, OPEN)
    command = """
    pwd; echo kept > /mnt/session/outputs/a; cat /mnt/session/outputs/a; ls -A /mnt/session/uploads
    touch /mnt/session/uploads/b 2>/dev/null || echo read-only; touch /workspace/c; ls /workspace
    """
    assert (await said(environments, EnvironmentConfig(), command)).split() == ["/workspace", "kept", "read-only", "c"]
    assert await said(environments, EnvironmentConfig(), "cat /mnt/session/outputs/a") == "kept"
    state = tmp_path / "workspaces" / "default" / "sesn_1.state"
    assert (state / "outputs" / "a").read_text() == "kept\n"
    assert not any((tmp_path / "leases").iterdir())
