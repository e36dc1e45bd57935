"""The compatibility page matches the probes and covers the whole SDK."""

import pytest
from tests.compat import page
from tests.compat.registry import CLAIMS


def test_the_page_is_up_to_date() -> None:
    assert page.PAGE.read_text() == page.render(), "run `just compatibility`"


def test_a_field_without_a_claim_fails_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    page.render()
    monkeypatch.delitem(CLAIMS, ("sessions.create", "title"))
    with pytest.raises(page.Incomplete, match=r"no probe covers: .*sessions\.create title"):
        page.render()


def test_a_claim_about_an_unknown_field_fails_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    page.render()
    monkeypatch.setitem(CLAIMS, ("sessions.create", "colour"), CLAIMS["sessions.create", "title"])
    with pytest.raises(page.Incomplete, match=r"does not have: .*sessions\.create colour"):
        page.render()
