"""Lists of allowed hosts: the hosts that an entry permits, and hosts that no entry permits."""

import pytest

from footplate.config import Settings
from footplate.domain.network.command_network_access import Network

LISTED = Network.allow(
    ["pypi.example.net", "*.Example.com", "git.example.org:8443", "93.184.216.34", "[2606:4700::1111]:443"]
)


@pytest.mark.parametrize(
    ("host", "port"),
    [
        ("pypi.example.net", 443),
        ("PyPI.example.net.", 80),
        ("a.example.com", 443),
        ("a.b.example.com", 80),
        ("git.example.org", 8443),
        ("93.184.216.34", 80),
        ("2606:4700:0::1111", 443),
    ],
)
def test_listed_hosts_are_permitted(host: str, port: int) -> None:
    assert LISTED.permits(host, port)


@pytest.mark.parametrize(
    ("host", "port"),
    [
        ("pypi.example.net", 22),
        ("pypi.example.net.evil.test", 443),
        ("evilpypi.example.net", 443),
        ("example.com", 443),
        ("evilexample.com", 443),
        ("git.example.org", 443),
        ("pypi.example.net\0.evil.test", 443),
        ("pypi.example.net%00", 443),
        ("pypi.example.net/", 443),
        ("", 443),
        ("93.184.216.35", 80),
        ("1572395042", 80),
        ("2606:4700::1111", 80),
    ],
)
def test_other_hosts_are_refused(host: str, port: int) -> None:
    assert not LISTED.permits(host, port)


def test_a_star_permits_every_name_and_no_address() -> None:
    every = Network.allow(["*"])
    assert every.permits("anything.test", 443)
    for address in ("127.0.0.1", "::1", "2130706433", "0x7f.1", "127.1", "0177.0.0.1", "[::ffff:7f00:1]"):
        assert not every.permits(address, 80)


def test_without_a_list_nothing_is_permitted() -> None:
    assert not Network().permits("pypi.example.net", 443)
    assert not Network("open").permits("pypi.example.net", 443)


@pytest.mark.parametrize(
    "entry",
    [
        "https://pypi.example.net",
        "pypi.example.net/simple",
        "a b",
        "*.*.org",
        "*pypi.example.net",
        "x:0",
        "x:99999",
        "é.org",
    ],
)
def test_an_invalid_host_is_refused(entry: str) -> None:
    with pytest.raises(ValueError, match="is not a valid host"):
        Network.allow([entry])


def test_the_allow_mode_needs_a_list() -> None:
    assert Settings(
        sandbox_network="allow", sandbox_allowed_hosts="pypi.example.net, x.test:81"
    ).network == Network.allow(["pypi.example.net", "x.test:81"])
    assert Settings().network == Network("none")
    for wrong in ({"sandbox_network": "allow"}, {"sandbox_allowed_hosts": "pypi.example.net"}):
        with pytest.raises(ValueError, match="must be set together"):
            Settings(**wrong)  # pyrefly: ignore[bad-argument-type]
    with pytest.raises(ValueError, match="is not a valid host"):
        Settings(sandbox_network="allow", sandbox_allowed_hosts="http://pypi.example.net")
