"""The search for secrets in a dump finds each encoding, at any position within a longer text."""

import base64

import pytest
from bench.support.roles.stored_secrets import find_secrets

SECRET = "fp_" + "aB3-_" * 8 + "xyz"


@pytest.mark.parametrize("before", ["", "a", "ab", "abc"])
def test_each_encoding_is_found(before: str) -> None:
    text = f'{before}{{"secret": "{SECRET}"}}'.encode()
    for data in (text, text.hex().upper().encode(), base64.b64encode(text), base64.urlsafe_b64encode(text)):
        assert find_secrets(b"x" + data, [SECRET], "the dump") != []


def test_an_unknown_secret_is_found_and_other_text_is_not() -> None:
    assert find_secrets(SECRET.encode(), [], "the dump") == ["the dump contains a secret in plain text"]
    assert find_secrets(b"fp_short " + bytes(range(256)), [SECRET], "the dump") == []
