"""The directories that a session may specify."""

import pytest

from footplate.domain.errors import InvalidRequest
from footplate.domain.projects.allowed_directories import AllowedRoots

ROOTS = AllowedRoots(
    {"default": ["/"], "acme": ["/srv/acme", "/home/ann/acme"]}, homes=["/home/ann", "/root", "/home/ben"]
)


@pytest.mark.parametrize(
    ("organisation", "directory"),
    [("default", "/home/ann/app"), ("default", "/srv"), ("acme", "/srv/acme"), ("acme", "/home/ann/acme/a/.venv")],
)
def test_directories_below_the_roots_are_allowed(organisation: str, directory: str) -> None:
    ROOTS.check_context(organisation, {"directory": directory})


@pytest.mark.parametrize(
    ("organisation", "directory", "why"),
    [
        ("acme", "/srv/other", "operator"),
        ("acme", "/srv/acme2", "operator"),
        ("acme", "/srv/acme/../other", "absolute"),
        ("acme", "srv/acme", "absolute"),
        ("nobody", "/srv/acme", "operator"),
        ("default", "/home/ann/app/.git/hooks", "git directory"),
        ("default", "/home/ann/app/.GIT", "git directory"),
        ("default", "/home/ann/.ssh", "hidden directory"),
        ("default", "/root/.config/footplate", "hidden directory"),
        ("default", "/home/ann", "contains the home directory"),
        ("default", "/home", "contains the home directory"),
        ("default", "/", "contains the home directory"),
    ],
)
def test_other_directories_are_refused(organisation: str, directory: str, why: str) -> None:
    with pytest.raises(InvalidRequest, match=why) as caught:
        ROOTS.check_context(organisation, {"directory": directory})
    assert caught.value.fields["field"] == "context.directory"


def test_without_roots_the_field_has_no_effect() -> None:
    AllowedRoots({}).check_context("acme", {"directory": "/etc"})
    ROOTS.check_context("acme", {"directory": 7, "other": "/etc"})
