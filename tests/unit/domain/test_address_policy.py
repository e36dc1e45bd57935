"""The addresses that web_fetch may access."""

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footplate.domain.network.address_policy import AddressPolicy

INTERNAL = [
    *("127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3"),
    *("10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1"),
    *("169.254.169.254", "100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254"),
    *("224.0.0.1", "239.255.255.255", "255.255.255.255", "240.0.0.1", "198.18.0.1", "192.0.2.1", "192.88.99.1"),
    *(
        "::",
        "::1",
        "fe80::1",
        "fe80::1%1",
        "fec0::1",
        "fc00::1",
        "ff02::1",
        "100::1",
        "2001:db8::1",
        "3fff::1",
        "5f00::1",
    ),
    *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1", "::ffff:0:127.0.0.1"),
    *("64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1"),
    *("2002:7f00:1::1", "2002:808:808::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2"),
]
PUBLIC = ["8.8.8.8", "93.184.216.34", "172.32.0.1", "2606:4700:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]


@pytest.mark.parametrize("address", INTERNAL)
def test_internal_addresses_are_refused(address: str) -> None:
    assert not AddressPolicy().permits("name.example", ip_address(address))


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_permitted(address: str) -> None:
    assert AddressPolicy().permits("name.example", ip_address(address))


@given(st.ip_addresses(v=4))
def test_an_ipv4_mapped_address_is_treated_as_its_ipv4_address(address: IPv4Address) -> None:
    policy = AddressPolicy()
    assert policy.permits("x", IPv6Address(f"::ffff:{address}")) is policy.permits("x", address)


@given(st.ip_addresses())
def test_nothing_internal_is_public(address: IPv4Address | IPv6Address) -> None:
    internal = address.is_private or address.is_loopback or address.is_link_local or address.is_multicast
    assert not (internal and AddressPolicy().permits("x", address)) or getattr(address, "ipv4_mapped", None)


@pytest.mark.parametrize(
    ("allow", "host", "address", "permitted"),
    [
        (["127.0.0.1"], "localhost", "127.0.0.1", True),
        (["127.0.0.1"], "localhost", "::ffff:127.0.0.1", True),
        (["127.0.0.1"], "localhost", "127.0.0.2", False),
        (["10.1.0.0/16", "fd00::/8"], "x", "10.1.255.1", True),
        (["10.1.0.0/16", "fd00::/8"], "x", "10.2.0.1", False),
        (["10.1.0.0/16", "fd00::/8"], "x", "fd12::1", True),
        (["wiki.internal"], "wiki.internal", "10.0.0.1", True),
        (["wiki.internal"], "WIKI.internal.", "10.0.0.1", True),
        (["wiki.internal"], "evil.wiki.internal", "10.0.0.1", False),
        (["wiki.internal"], "internal", "10.0.0.1", False),
    ],
)
def test_an_operator_may_allow_addresses_and_hosts(
    allow: list[str], host: str, address: str, *, permitted: bool
) -> None:
    assert AddressPolicy(allow).permits(host, ip_address(address)) is permitted
