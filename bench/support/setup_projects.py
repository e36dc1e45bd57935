"""Creates two projects with many dependencies that are installed without a network: one for Python, one for Node.

The Python packages are wheels that are packed from what is installed here. The Node packages are generated tarballs.
Both are files of the repository.
"""

import base64
import hashlib
import importlib.metadata
import io
import json
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution
from pathlib import Path
from typing import Final

from bench.prove.figure import require

_PURE_TAG: Final = "Tag: py3-none-any"
_MAX_PACKAGE_BYTES: Final = 2_500_000
_MODULES_PER_PACKAGE: Final = 60
_COMMIT: Final = ("-c", "user.name=User", "-c", "user.email=user@example.com", "commit", "-qm", "first")
_PYTHON_SETUP: Final = (
    'case " $FOOTPLATE_CACHE_RESTORED " in *" .venv "*) ;; *) python3 -m venv .venv && '
    ".venv/bin/pip install -q --disable-pip-version-check --no-index --no-deps --find-links wheels "
    "-r requirements.txt ;; esac"
)
_NODE_SETUP: Final = (
    'case " $FOOTPLATE_CACHE_RESTORED " in *" node_modules "*) ;; '
    "*) npm ci --offline --no-audit --no-fund --silent ;; esac"
)
_PYTHON_TESTS: Final = """\
import hashlib, importlib.metadata, pathlib
names = [line.strip() for line in pathlib.Path("requirements.txt").read_text().splitlines()]
digest = hashlib.sha256()
for line in names:
    name, _, version = line.partition("==")
    found = importlib.metadata.distribution(name)
    assert found.version == version, line
    for file in sorted(found.files, key=str):
        if file.hash is not None and ".." not in file.parts:
            digest.update(file.read_binary())
print("tests passed", len(names), digest.hexdigest())
"""
_NODE_TESTS: Final = """\
const crypto = require('crypto'), names = Object.keys(require('./package.json').dependencies).sort();
const digest = crypto.createHash('sha256');
for (const name of names) digest.update(require(name).content());
console.log('tests passed', names.length, digest.digest('hex'));
"""


@dataclass(frozen=True, slots=True)
class SetupProject:
    name: str
    path: str
    """Below the projects root."""
    setup: str
    tests: str
    """The command that runs the tests."""
    dependencies: int


def create_python_project(root: Path, name: str, dependencies: int) -> SetupProject:
    """Creates a repository whose requirements are wheels in it."""
    repository = root / name
    (repository / "wheels").mkdir(parents=True)
    chosen = list(_pure_distributions(dependencies))
    require(holds=len(chosen) == dependencies, otherwise=f"only {len(chosen)} pure packages are installed here")
    for distribution in chosen:
        _pack_wheel(distribution, repository / "wheels")
    lines = "".join(f"{found.name}=={found.version}\n" for found in chosen)
    (repository / "requirements.txt").write_text(lines)
    (repository / "tests.py").write_text(_PYTHON_TESTS)
    (repository / ".gitignore").write_text(".venv/\n")
    _commit(repository)
    return SetupProject("Python", name, _PYTHON_SETUP, ".venv/bin/python tests.py", dependencies)


def create_node_project(root: Path, name: str, dependencies: int) -> SetupProject:
    """Creates a repository with a lock file whose packages are tarballs in it."""
    repository = root / name
    (repository / "packages").mkdir(parents=True)
    names = [f"package-{number}" for number in range(dependencies)]
    for package in names:
        _pack_node_package(package, repository / "packages" / f"{package}.tgz")
    manifest = {"name": "app", "version": "1.0.0", "dependencies": {one: f"file:packages/{one}.tgz" for one in names}}
    (repository / "package.json").write_text(json.dumps(manifest))
    (repository / "tests.js").write_text(_NODE_TESTS)
    (repository / ".gitignore").write_text("node_modules/\n")
    subprocess.run(
        ["npm", "install", "--package-lock-only", "--offline", "--no-audit", "--no-fund", "--silent"],
        cwd=repository,
        check=True,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(repository / "packages")},
    )
    _commit(repository)
    return SetupProject("Node", name, _NODE_SETUP, "node tests.js", dependencies)


def _pure_distributions(count: int) -> Iterator[Distribution]:
    found = sorted(importlib.metadata.distributions(), key=lambda each: each.name.lower())
    for distribution in found:
        if count and _PURE_TAG in (distribution.read_text("WHEEL") or "") and _is_small(distribution):
            count -= 1
            yield distribution


def _is_small(distribution: Distribution) -> bool:
    files = list(_packed_files(distribution))
    return len(files) > 1 and sum(path.stat().st_size for _, path in files) < _MAX_PACKAGE_BYTES


def _packed_files(distribution: Distribution) -> Iterator[tuple[str, Path]]:
    skipped = {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"}
    for file in distribution.files or ():
        path = Path(str(distribution.locate_file(file)))
        if ".." not in file.parts and file.suffix != ".pyc" and file.name not in skipped and path.is_file():
            yield str(file), path


def _pack_wheel(distribution: Distribution, folder: Path) -> None:
    name = distribution.name.replace("-", "_").replace(".", "_")
    information = next(name for name, _ in _packed_files(distribution) if name.endswith(".dist-info/METADATA"))
    record = f"{information.rpartition('/')[0]}/RECORD"
    lines: list[str] = []
    with zipfile.ZipFile(
        folder / f"{name}-{distribution.version}-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED
    ) as wheel:
        for inside, path in _packed_files(distribution):
            content = path.read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            lines.append(f"{inside},sha256={digest},{len(content)}\n")
            wheel.writestr(inside, content)
        wheel.writestr(record, "".join([*lines, f"{record},,\n"]))


def _pack_node_package(name: str, target: Path) -> None:
    manifest = json.dumps({"name": name, "version": "1.0.0", "main": "index.js"})
    modules = {
        f"module-{number}.js": f"module.exports = '{name} {number} {'x' * 400}';\n"
        for number in range(_MODULES_PER_PACKAGE)
    }
    required = ", ".join(f"require('./{module}')" for module in modules)
    files = {"package.json": manifest, "index.js": f"exports.content = () => [{required}].join();\n", **modules}
    with tarfile.open(target, "w:gz") as archive:
        for path, text in files.items():
            entry = tarfile.TarInfo(f"package/{path}")
            entry.size, entry.mode = len(text), 0o644
            archive.addfile(entry, io.BytesIO(text.encode()))


def _commit(repository: Path) -> None:
    for command in (("init", "-q", "-b", "main"), ("add", "-A"), _COMMIT):
        subprocess.run(["git", *command], cwd=repository, check=True)
