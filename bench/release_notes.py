"""Checks that a tag fits the version and the changelog, and prints the changes of this version.

python -m bench.release_notes v0.2.0
"""

import ast
import re
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]


def find_version(source: str) -> str:
    """Returns the value of `__version__`, without importing the module."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["__version__"]:
            return str(ast.literal_eval(node.value))
    raise ValueError("src/footplate/__init__.py has no __version__.")


def find_notes(changelog: str, version: str) -> str:
    """Returns the text of the version's section. Raises `ValueError` if it is missing, undated or empty."""
    heading = re.search(rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE)
    if heading is None:
        raise ValueError(f"CHANGELOG.md has no section `## [{version}] - YYYY-MM-DD`.")
    notes, *_ = re.split(r"^## ", changelog[heading.end() :], maxsplit=1, flags=re.MULTILINE)
    if not notes.strip():
        raise ValueError(f"The section of {version} in CHANGELOG.md is empty.")
    return notes.strip()


def read_notes(tag: str) -> str:
    version = find_version((ROOT / "src" / "footplate" / "__init__.py").read_text())
    if tag != f"v{version}":
        raise ValueError(f"The tag is {tag}, but the version is {version}. Tag it as v{version}.")
    return find_notes((ROOT / "CHANGELOG.md").read_text(), version)


if __name__ == "__main__":
    try:
        print(read_notes(sys.argv[1]))
    except ValueError as error:
        sys.exit(str(error))
