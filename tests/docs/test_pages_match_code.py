"""The documentation matches the code: everything that it names exists, and everything that it must list is listed."""

import json
import re
import tomllib
from pathlib import Path

from anthropic.resources.messages import DEPRECATED_MODELS
from bench.prove import registry

from footplate.domain.errors import DOCS

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "footplate"


def _read(name: str) -> str:
    return (ROOT / name).read_text()


def _packages() -> set[str]:
    return {path.parent.name for path in SOURCE.glob("*/__init__.py")}


def test_architecture_names_every_package_and_top_level_module() -> None:
    text = _read("ARCHITECTURE.md")
    modules = {path.name for path in SOURCE.glob("*.py")} - {"__init__.py"}
    missing = [name for name in _packages() if f"`{name}/`" not in text] + [
        name for name in modules if f"`{name}`" not in text
    ]
    assert missing == []


def test_every_path_that_architecture_names_exists() -> None:
    named = re.findall(r"`([\w./-]+(?:/|\.(?:py|sql|md|toml|lock|json)))`", _read("ARCHITECTURE.md"))
    assert len(named) > 20
    gone = [name for name in named if not any((root / name).exists() for root in (ROOT, SOURCE))]
    assert gone == []


def test_every_dependency_has_its_line() -> None:
    project = tomllib.loads(_read("pyproject.toml"))
    extras, groups = project["project"]["optional-dependencies"], project["dependency-groups"]
    every = [project["project"]["dependencies"], *extras.values(), *groups.values()]
    wanted = [line for group in every for line in group]
    names = {re.split(r"[\[<>=!~; ]", line, maxsplit=1)[0] for line in wanted} - {"footplate"}
    python, _, _ = _read("docs/dependencies.md").partition("## In the dashboard")
    assert set(re.findall(r"^\| `([\w-]+)` \|", python, re.MULTILINE)) == names


def test_every_package_of_the_dashboard_has_its_line() -> None:
    project = json.loads(_read("web/package.json"))
    _, _, page = _read("docs/dependencies.md").partition("## In the dashboard")
    cells = re.findall(r"^\| (`[^|]+`) \|", page, re.MULTILINE)
    rows = [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]
    assert sorted(rows) == sorted([*project["dependencies"], *project["devDependencies"]])


def test_every_claim_has_its_row() -> None:
    rows = re.findall(r"^\|.*\| `just prove ([a-z]+-\d+)`", _read("docs/evidence.md"), re.MULTILINE)
    assert len(rows) == len(set(rows))
    assert {claim.key for claim in registry.claims()} <= set(rows)


def test_every_error_code_is_explained() -> None:
    source = "".join(path.read_text() for path in sorted((ROOT / "src").rglob("*.py")))
    codes = set(re.findall(r'^    code(?:: \w+(?:\[str\])?)? = "([a-z_]+)"$', source, re.MULTILINE))
    explained = set(re.findall(r"^\| `([a-z_]+)` \|", _read("docs/errors.md"), re.MULTILINE))
    assert {"internal", "no_sandbox"} <= codes
    assert codes - explained == set()
    assert codes - set(re.findall(r'<a id="([a-z_]+)"', _read(DOCS))) == set()


def test_no_model_is_deprecated() -> None:
    """The official SDK's own table says which models are."""
    names = re.compile("|".join(rf"{re.escape(name)}(?![\w-])" for name in DEPRECATED_MODELS))
    files = [path for folder in ("src", "docs", "tests") for path in (ROOT / folder).rglob("*.*")]
    found = [
        f"{path.relative_to(ROOT)}: {names.search(text)}"
        for path in [*ROOT.glob("*.md"), *files]
        if path.suffix in {".py", ".md", ".json", ".toml", ".txt"} and names.search(text := path.read_text())
    ]
    assert found == []


def test_the_glossary_has_every_term() -> None:
    terms = set(re.findall(r"^\*\*([a-z ]+)\*\*", _read("docs/glossary.md"), re.MULTILINE))
    assert terms >= {
        *("agent", "environment", "session", "step", "turn", "event", "position", "preview", "epoch", "guardian"),
        *("snapshot", "gate", "park", "proxy", "cell"),
    }


def test_links_between_pages_lead_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        targets = re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", page.read_text())
        assert [target for target in targets if not (page.parent / target).exists()] == [], page


def test_the_index_lists_every_page() -> None:
    listed = set(re.findall(r"\]\(([\w./-]+\.md)\)", _read("docs/README.md")))
    docs = ROOT / "docs"
    pages = {str(page.relative_to(docs)) for page in docs.rglob("*.md")} - {"README.md"}
    assert pages - listed == set()


def test_the_lock_file_names_no_host_and_no_path() -> None:
    text = _read("requirements.lock")
    assert "--hash=sha256:" in text
    assert re.findall(r"https?://|--(?:extra-)?index-url|--find-links|file:", text) == []
