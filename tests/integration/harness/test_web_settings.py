"""Settings of the web tools: mistakes are reported at the start, and never with a key."""

import pytest
from pydantic import ValidationError

from footplate.config import Settings


def test_allowed_hosts_and_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOOTPLATE_WEB_ALLOW", "wiki.internal, 10.1.0.0/16,::1,")
    assert Settings().web_allowed == ("wiki.internal", "10.1.0.0/16", "::1")


@pytest.mark.parametrize("entry", ["10.1.2.3/16", "http://wiki", "a b", "*.internal", "wiki:8080"])
def test_an_invalid_entry_is_refused(entry: str) -> None:
    with pytest.raises(ValidationError, match="not a host name, address or network"):
        Settings(web_allow=entry)


def test_a_provider_needs_its_address_or_key() -> None:
    with pytest.raises(ValidationError, match="needs FOOTPLATE_SEARCH_URL"):
        Settings(search_provider="searxng")
    with pytest.raises(ValidationError, match="needs FOOTPLATE_SEARCH_API_KEY"):
        Settings(search_provider="brave")


def test_an_error_shows_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOOTPLATE_SEARCH_API_KEY", "very-secret")
    monkeypatch.setenv("FOOTPLATE_SEARCH_PROVIDER", "searxng")
    with pytest.raises(ValidationError) as failed:
        Settings()
    assert "very-secret" not in str(failed.value)
    monkeypatch.setenv("FOOTPLATE_SEARCH_PROVIDER", "brave")
    assert "very-secret" not in repr(Settings())
    assert Settings().search_address.startswith("https://api.search.brave.com/")
