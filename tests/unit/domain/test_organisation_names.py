"""Valid and invalid names of organisations."""

import pytest

from footplate.domain.errors import InvalidRequest
from footplate.domain.organisations.organisation_names import check_new_name, directory_name
from footplate.domain.projects.project import resolve_projects_root

PATHS = ["", ".", "..", "../../../../tmp/x", "/tmp/x", "a/b", "a\0b", "x" * 256]


@pytest.mark.parametrize("name", [*PATHS, "-x", ".hidden", "a b", "a\n", "é", "x" * 65, "{organisation}"])
def test_an_invalid_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequest, match="is not a valid organisation name"):
        check_new_name(name)


@pytest.mark.parametrize("name", ["default", "org_01J", "acme.example-2", "a..b", "0"])
def test_a_valid_name_is_accepted(name: str) -> None:
    check_new_name(name)
    assert directory_name(name) == name


@pytest.mark.parametrize("name", PATHS)
def test_a_name_that_is_a_path_is_no_directory(name: str) -> None:
    with pytest.raises(InvalidRequest, match="cannot be used as a directory name"):
        directory_name(name)
    with pytest.raises(InvalidRequest):
        resolve_projects_root("/srv/{organisation}", name)
    assert directory_name("My Company") == "My Company"
