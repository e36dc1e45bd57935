"""Valid and invalid paths, URLs, branches and names of projects."""

import pytest

from footplate.domain.errors import InvalidRequest
from footplate.domain.json import Json
from footplate.domain.projects.project import (
    SessionProject,
    Trust,
    check_branch,
    check_url,
    derive_name,
    normalize_path,
    read_base_commits,
    resolve_projects_root,
)

ROOT = "/srv/projects"


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("team/website", "team/website"),
        ("./team//website/", "team/website"),
        ("/srv/projects/team", "team"),
        ("caf\u00e9/\U0001f680", "caf\u00e9/\U0001f680"),
        ("%2e%2e/x", "%2e%2e/x"),  # an ordinary name: nothing decodes it
        ("\uff0e\uff0e/x", "\uff0e\uff0e/x"),
        ("..x/...", "..x/..."),
    ],
)
def test_valid_paths_are_normalised(given: str, path: str) -> None:
    assert normalize_path(given, ROOT) == path


@pytest.mark.parametrize(
    "given",
    [
        "..", "a/../b", "../srv/projects/a", ".", "", "/", "/srv/projects", "/srv/projects_evil/a", "/etc",
        "/srv/projects/../etc", "a/.git", "a/.GIT/hooks", "a\nb", "a\x7f", "x" * 256, "\u00e9" * 128, "a/" * 600,
    ],
)  # fmt: skip
def test_invalid_paths_are_refused(given: str) -> None:
    with pytest.raises(InvalidRequest, match=r"^path: ") as caught:
        normalize_path(given, ROOT)
    assert caught.value.fields["field"] == "path"


def test_the_root_belongs_to_one_organisation_or_has_a_directory_for_each() -> None:
    assert resolve_projects_root("/srv/{organisation}", "org_1") == "/srv/org_1"
    assert resolve_projects_root("/srv", "default") == "/srv"
    with pytest.raises(InvalidRequest, match="another organisation"):
        resolve_projects_root("/srv", "org_1")


@pytest.mark.parametrize("given", ["https://git.example.com/a/b.git", "http://127.0.0.1:8080/x", "http://[::1]:80/x"])
def test_valid_urls_are_normalised(given: str) -> None:
    assert check_url(f"{given}/") == given


@pytest.mark.parametrize(
    "given",
    [
        "ssh://git@example.com/a", "git@example.com:a", "ext::sh -c id", "file:///etc", "https:///a", "/a",
        "--upload-pack=x",
        "https://me:secret@example.com/a", "https://me@example.com/a", "https://example.com/a?b", "https://example.com/a#b",
        "https://example.com/a b", "https://example.com:99999/", "https://[::1/a",
        "https://-example.com/a", "https://example.com./a", "https://*/a", "https://exa%6dple.com/a",
    ],
)  # fmt: skip
def test_invalid_urls_are_refused(given: str) -> None:
    with pytest.raises(InvalidRequest, match=r"^url: ") as caught:
        check_url(given)
    assert "secret" not in caught.value.message


@pytest.mark.parametrize("given", ["main", "release/2", "caf\u00e9", "a.b-c_d", "v1@2"])
def test_valid_branches_are_accepted(given: str) -> None:
    assert check_branch(given) == given


@pytest.mark.parametrize(
    "given", ["-x", "--all", "a..b", "a b", "a~1", "a^", "a:b", "a?", "a*", "[a", "a\\b", "/a", "a/", "a.", ".a",
              "a/.b", "a//b", "a.lock", "a.lock/b", "@{0}", "a@{1}", "a\n", "", "x" * 256],
)  # fmt: skip
def test_invalid_branches_are_refused(given: str) -> None:
    with pytest.raises(InvalidRequest, match=r"^branch: "):
        check_branch(given)


@pytest.mark.parametrize(
    ("location", "name"),
    [
        ("team/website", "website"),
        ("https://git.example.com/team/a%20b.git", "a-b"),
        ("https://git.example.com", "project"),
        ("\U0001f680", "project"),
        ("-rf", "rf"),
    ],
)
def test_the_default_name_comes_from_the_path_or_url(location: str, name: str) -> None:
    assert derive_name(location) == name


def test_an_unknown_trust_level_is_not_trusted() -> None:
    assert SessionProject.load({"id": "p", "name": "n", "trust": "everything"}).trust is Trust.NOTHING
    assert SessionProject.load({"id": "p", "name": "n", "trust": "all"}).trust is Trust.ALL


def test_a_session_can_select_commits_by_their_full_ids() -> None:
    commits: dict[str, Json] = {"proj_1": "a" * 40, "proj_2": "0" * 64}
    assert read_base_commits({"base_commits": commits}) == commits
    assert read_base_commits({}) == {}
    refused: list[Json] = [[], None, "a" * 40, {"proj_1": "main"}, {"proj_1": "--upload-pack=x"}, {"proj_1": None}]
    for given in refused:
        with pytest.raises(InvalidRequest, match=r"context\.base_commits"):
            read_base_commits({"base_commits": given})
