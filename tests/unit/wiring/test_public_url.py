"""The public address is compared with the `Host` of browsers, which is in lower case and without the default port."""

import pytest
from pydantic import ValidationError

from footplate.config import Settings


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("https://Footplate.Example.com/", "https://footplate.example.com"),
        ("https://footplate.example.com:443", "https://footplate.example.com"),
        ("HTTP://127.0.0.1:80", "http://127.0.0.1"),
        ("http://[::1]:8700", "http://[::1]:8700"),
        ("https://footplate.example.com:8443", "https://footplate.example.com:8443"),
    ],
)
def test_the_address_is_written_as_browsers_send_it(given: str, expected: str) -> None:
    assert Settings(public_url=given).public_url == expected


@pytest.mark.parametrize(
    "given", ["footplate.example.com", "https://a/path", "https://a?b", "https://user@a", "https://a:99999"]
)
def test_other_addresses_are_refused(given: str) -> None:
    with pytest.raises(ValidationError, match="FOOTPLATE_PUBLIC_URL is"):
        Settings(public_url=given)
