"""The operator's settings for hooks, and the errors of invalid settings."""

import pytest
from pydantic import SecretStr, ValidationError

from footplate.config import Settings

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def test_hook_hosts_are_permitted() -> None:
    settings = Settings(hook_hosts="hooks.example.com, checks:8443", hook_secret=SecretStr(SECRET))
    assert settings.hook_network.permits("hooks.example.com", 443)
    assert settings.hook_network.permits("checks", 8443)
    assert not settings.hook_network.permits("checks", 443)
    assert not Settings().hook_network.permits("hooks.example.com", 443)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"hook_hosts": "hooks.example.com"}, "needs FOOTPLATE_HOOK_SECRET"),
        ({"hook_hosts": "https://hooks.example.com", "hook_secret": SECRET}, "is not a valid host"),
        ({"hook_secret": "secret"}, "FOOTPLATE_HOOK_SECRET is not valid"),
        ({"hook_secret": "whsec_c2hvcnQ="}, "FOOTPLATE_HOOK_SECRET is not valid"),
    ],
)
def test_invalid_settings_are_refused_without_showing_the_secret(given: dict[str, str], message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Settings(**given)  # pyrefly: ignore[bad-argument-type]  # strings, as in the environment
    assert message in str(caught.value)
    assert given.get("hook_secret", "nothing") not in str(caught.value)
