"""A sandbox reaches only what its network setting allows: by name, address, IPv6, redirect, tunnel or DNS.

Each attempt is made from inside a sandbox, against real servers on this machine that record their requests. A table of
this claim resolves the names. The servers are on loopback, so the names that pass are internal ones which the operator
allows; every other name that resolves to loopback is refused.
"""

import logging
import secrets
import socket
import tempfile
from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Final

import orjson
import structlog

from bench.prove.figure import Figure, NotHeld
from bench.support.egress import attempt_program, network_attempts
from bench.support.egress.network_attempts import NetworkAttempt
from bench.support.egress.target_servers import TargetServers, open_servers
from footplate.domain.agents.environment_config import Backend, EnvironmentConfig
from footplate.domain.network.address_policy import Address, AddressPolicy
from footplate.domain.network.command_network_access import Network
from footplate.domain.ports.engine import OpenRequest
from footplate.domain.ports.harness import Endpoint
from footplate.environments.factory import SandboxFactory
from footplate.environments.sandbox.probe import probe_sandbox
from footplate.lease_clock import lease_clock
from footplate.proxy.allow_list_proxy import AllowListProxy
from footplate.proxy.model_proxy import ModelProxy
from footplate.testing import ScriptedModel, replies, reply, text

UID: Final = 65_520
_TIMEOUT_SECONDS: Final = 300.0
_PROGRAM: Final = Path(attempt_program.__file__).read_bytes()


class _NameTable:
    """The name service of this claim. It records lookups, because a name must be resolved once per connection."""

    def __init__(self) -> None:
        self.lookups: list[str] = []

    async def __call__(self, host: str, _port: int) -> Sequence[Address]:
        self.lookups.append(host)
        name = host.lower().removesuffix(".")
        if name not in network_attempts.ADDRESSES:
            raise socket.gaierror(f"{host} is not in the table")
        return [ip_address(network_attempts.ADDRESSES[name])]


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    # Each refusal is logged, as it should be. Here they are counted, and the log would be too long.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    rounds = 1 if quick else 20
    faults: list[str] = []
    counts = {"allow": [0, 0], "none": [0, 0], "open": [0, 0]}
    async with open_servers() as servers:
        for _ in range(rounds):
            for mode, count in counts.items():
                passed, refused, found = await _run_round(servers, mode)
                count[0] += passed
                count[1] += refused
                faults += found
    total = sum(map(sum, counts.values()))
    by_mode = "; ".join(f"{mode}: {passed} passed, {refused} refused" for mode, (passed, refused) in counts.items())
    headline = f"{total:,} attempts on {len(counts)} kinds of network: every one passed or refused as configured"
    summary = f"{rounds} sandboxes per network, every attempt as configured: {by_mode}; no other request arrived"
    if faults:
        headline = f"{len(faults)} of {total:,} attempts on {len(counts)} kinds of network went wrong"
        summary = f"{len(faults)} faults, the first: {faults[0]}"
    return Figure(
        headline=headline,
        summary=summary,
        holds=not faults,
        details={"faults": list(faults), "counts": {mode: list(pair) for mode, pair in counts.items()}},
    )


async def _run_round(servers: TargetServers, mode: str) -> tuple[int, int, list[str]]:
    names = _NameTable()
    with tempfile.TemporaryDirectory(prefix="footplate-") as directory:
        responses, cases_tried = await _make_attempts(Path(directory), servers, mode, names)
    faults = [fault for case in cases_tried if (fault := _find_fault(case, responses[case.name], mode))]
    faults += [
        f"{mode}: a server received a request for {path!r}"
        for path in servers.requested_paths
        if not _is_expected_request(path)
    ]
    faults += [f"{mode}: a datagram arrived" for _ in servers.datagrams if mode != "open"]
    faults += [f"{mode}: {name} was looked up" for name in names.lookups if not _is_listed(name)]
    servers.requested_paths.clear()
    servers.datagrams.clear()
    return sum(case.passes for case in cases_tried), sum(not case.passes for case in cases_tried), faults


async def _make_attempts(
    directory: Path, servers: TargetServers, mode: str, names: _NameTable
) -> tuple[dict[str, dict[str, str]], list[NetworkAttempt]]:
    found = await probe_sandbox(UID)
    listed = [f"{host}:{servers.port}" for host in network_attempts.ALLOWED]
    network = Network.allow(listed) if mode == "allow" else Network("open" if mode == "open" else "none")
    egress = AllowListProxy(AddressPolicy(network_attempts.INTERNAL_BUT_ALLOWED), names)
    backend = Backend(name="sandbox", network=network, can_limit_network=True, supports_allow_lists=True)
    sandboxed = SandboxFactory(directory, backend, found.host, uid=UID, egress=egress)
    hi = replies(reply(text("hi"), repeat=True))
    async with (
        ScriptedModel({"hi": hi}) as model,
        ModelProxy({"anthropic": Endpoint(secrets.token_hex(20), model.url)}) as proxy,
    ):
        deadline = lease_clock() + _TIMEOUT_SECONDS
        grant = proxy.grant(deadline=deadline)
        cases_tried = {
            "allow": network_attempts.attempts_with_allow_list,
            "none": network_attempts.attempts_without_network,
            "open": network_attempts.attempts_on_open_network,
        }[mode](servers)
        cases_tried += network_attempts.attempts_with_token(grant.endpoints["anthropic"].api_key)
        environment = await sandboxed.open_environment(
            OpenRequest(
                organisation="org",
                session_id="session",
                deadline=deadline,
                variables={},
                config=EnvironmentConfig(),
                models=grant,
            )
        )
        try:
            await environment.write("attempts.py", _PROGRAM)
            request_body = orjson.dumps([case.as_request for case in cases_tried])
            result = await environment.run(["python3", "attempts.py"], stdin=request_body, timeout=_TIMEOUT_SECONDS)
        finally:
            await environment.aclose()
            await grant.aclose()
    if result.exit_code != 0:
        raise NotHeld(f"the attempts did not run: {result.stderr.decode(errors='replace')[-500:]} {result.error}")
    responses: dict[str, dict[str, str]] = orjson.loads(result.stdout)
    return responses, cases_tried


def _find_fault(case: NetworkAttempt, response: dict[str, str], mode: str) -> str | None:
    heard = response.get("heard")
    if case.passes:
        right = heard is not None and case.expected in heard
        if case.way == "interfaces":
            right = heard == case.expected
        return None if right else f"{mode}: {case.name} did not pass: {response}"
    reached = heard is not None and case.expected in heard
    return f"{mode}: {case.name} got through: {heard!r}" if reached else None


def _is_expected_request(path: str) -> bool:
    """Whether a server may receive this request: allowed attempts and the redirects, but not their targets."""
    return path.startswith(("ok-", "to/")) or path == "first"


def _is_listed(name: str) -> bool:
    return Network.allow(list(network_attempts.ALLOWED)).permits(name, 80)
