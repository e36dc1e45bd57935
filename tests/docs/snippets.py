"""Runs the code blocks of a Markdown page in order, as a reader would, in a scratch checkout.

```bash and ```python blocks are run. The variables that a bash block exports, and the directory in which it ends, apply
to the blocks after it. A ```bash background block runs until the last page ends; the next block waits until it has
printed the text after `until=`, with underscores for spaces. Blocks in other languages (text, json, …) are not run.

Pages share identical blocks for the virtual environment and for `footplate dev` in the background.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from footplate.stack.free_ports import find_free_port

ROOT: Final = Path(__file__).resolve().parents[2]
_BLOCK: Final = re.compile(r"^```(?P<info>[^\n`]+)\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE)
_PASSED: Final = re.compile(r"(?i)(HOME|LANG|UV_.*|SSL_CERT_.*|REQUESTS_CA_BUNDLE|PIP_CERT|(https?|all|no)_proxy)")
_START_TIMEOUT: Final = 120.0
_DASHBOARD: Final = ROOT / "src" / "footplate" / "dashboard" / "index.html"
_CREATE: Final = "python3 -m venv .venv"
_ACTIVATE: Final = "source .venv/bin/activate"
_COPIED: Final = (
    *("src", "bench", "docs", "web", "pyproject.toml", "requirements.lock", "justfile", "README.md", "LICENSE"),
)


@dataclass(frozen=True, slots=True)
class Snippet:
    page: str
    line: int
    language: str
    options: Sequence[str]
    code: str

    @property
    def is_run(self) -> bool:
        return self.language in {"bash", "python"}

    @property
    def is_background(self) -> bool:
        return "background" in self.options


def snippets(page: Path) -> Sequence[Snippet]:
    text = page.read_text()
    return [
        Snippet(page.name, text[: match.start()].count("\n") + 1, *_info(match["info"]), match["code"])
        for match in _BLOCK.finditer(text)
    ]


def pages() -> Iterator[Path]:
    yield ROOT / "README.md"
    yield ROOT / "CONTRIBUTING.md"
    yield ROOT / "ARCHITECTURE.md"
    yield from sorted((ROOT / "docs").rglob("*.md"))


class SharedProcesses:
    """Virtual environments and background processes that pages share until `close`."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._environments: dict[str, dict[str, str]] = {}
        self.virtual_environments: dict[str, str] = {}
        """The shell lines that activate a virtual environment, by the code that created it."""

    def environment(self, page: Sequence[Snippet]) -> dict[str, str]:
        """Returns the same variables for pages that start the same background programs, so that they can share them."""
        started = "".join(snippet.code for snippet in page if snippet.is_background) or page[0].page
        if started not in self._environments:
            home = self._scratch / f"home-{len(self._environments)}"
            self._environments[started] = {**_environment(home), "FOOTPLATE_PORT": str(find_free_port())}
        return self._environments[started]

    def is_running(self, snippet: Snippet) -> bool:
        process = self._running.get(snippet.code)
        return process is not None and process.poll() is None

    def keep_running(self, snippet: Snippet, process: subprocess.Popen[bytes]) -> None:
        """Registers a process that runs until the last page has ended."""
        self._running[snippet.code] = process

    def close(self) -> None:
        for process in self._running.values():
            process.send_signal(signal.SIGINT)
        codes = [_wait(process) for process in self._running.values()]
        assert set(codes) <= {0, -signal.SIGINT}, f"{[*self._running]} ended with {codes}"


class PageRunner:
    """Runs the snippets of one page."""

    def __init__(self, page: Path, scratch: Path, shared: SharedProcesses) -> None:
        self._snippets = [snippet for snippet in snippets(page) if snippet.is_run]
        self._checkout = scratch / "footplate"
        self._state = scratch / "state"
        self._shared = shared
        self._environment = shared.environment(self._snippets)
        self._logs = scratch / "logs"
        self._logs.mkdir()
        _copy_checkout(self._checkout)

    def run(self) -> None:
        for snippet in self._snippets:
            if snippet.is_background:
                if not self._shared.is_running(snippet):
                    self._start(snippet)
            elif snippet.code in self._shared.virtual_environments:
                self._state.write_text(self._shared.virtual_environments[snippet.code])
            else:
                self._finish(snippet)
                if _CREATE in snippet.code:
                    _provide_dependencies(self._checkout / ".venv")
                elif _ACTIVATE in snippet.code:
                    self._shared.virtual_environments[snippet.code] = self._activation()

    def _activation(self) -> str:
        lines = self._state.read_text().splitlines(keepends=True)
        return "".join(line for line in lines if line.startswith(("declare -x PATH=", "declare -x VIRTUAL_ENV=")))

    def _finish(self, snippet: Snippet) -> None:
        # Shorter than pytest's own limit, so that the failure names the page and the line.
        result = subprocess.run(
            self._argv(snippet), env=self._environment, capture_output=True, text=True, check=False, timeout=280
        )
        assert result.returncode == 0, (
            f"{snippet.page}:{snippet.line} failed with {result.returncode}\n{snippet.code}\n"
            f"{result.stdout[-3000:]}\n{result.stderr[-3000:]}"
        )

    def _start(self, snippet: Snippet) -> None:
        log = self._logs / f"{snippet.page}-{snippet.line}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                self._argv(snippet), env=self._environment, stdout=output, stderr=subprocess.STDOUT
            )
        self._shared.keep_running(snippet, process)
        awaited = next(option.removeprefix("until=") for option in snippet.options if option.startswith("until="))
        deadline = time.monotonic() + _START_TIMEOUT
        while awaited.replace("_", " ").encode() not in log.read_bytes():
            ended = process.poll() is not None or time.monotonic() > deadline
            assert not ended, f"{snippet.page}:{snippet.line} did not print {awaited}\n{log.read_text()[-3000:]}"
            time.sleep(0.1)

    def _argv(self, snippet: Snippet) -> list[str]:
        """Returns the command of a shell that continues the state of the last one and saves its own for the next."""
        before = f'cd "{self._checkout}"\n[ ! -f "{self._state}" ] || . "{self._state}"\n'
        if snippet.language == "python":
            file = self._logs / f"{snippet.page}-{snippet.line}.py"
            file.write_text(snippet.code)
            return ["bash", "-c", f'{before}exec python "{file}"']
        if snippet.is_background:
            return ["bash", "-c", f"{before}exec {snippet.code}"]
        after = f'\n{{ export -p; echo "cd \\"$PWD\\""; }} > "{self._state}"\n'
        return ["bash", "-c", f"set -euo pipefail\n{before}{snippet.code}{after}"]


def _wait(process: subprocess.Popen[bytes]) -> int:
    try:
        return process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def _info(info: str) -> tuple[str, Sequence[str]]:
    language, *options = info.split()
    return language, options


def _environment(home: Path) -> dict[str, str]:
    uv = shutil.which("uv")
    assert uv is not None, "The pages use uv. Install it, or run .ci/run, which installs it."
    path = f"{Path(uv).parent}:/usr/local/bin:/usr/bin:/bin"
    passed = {name: value for name, value in os.environ.items() if _PASSED.fullmatch(name)}
    own = {f"XDG_{kind.upper()}_HOME": str(home / kind) for kind in ("data", "config", "state")}
    # The lanes of CI have built the dashboard already.
    builds = {"FOOTPLATE_SKIP_DASHBOARD_BUILD": "1"} if _DASHBOARD.is_file() else {}
    return {**passed, **own, **builds, "PATH": path, "NO_COLOR": "1", "PYTHONUNBUFFERED": "1", "PIP_NO_COMPILE": "1"}


def _provide_dependencies(environment: Path) -> None:
    """Links this environment's packages, except Footplate, into the page's environment, so that pip downloads nothing.

    `just prove door-8` measures how long the real installation takes.
    """
    packages = Path("lib", f"python{sys.version_info.major}.{sys.version_info.minor}", "site-packages")
    for directory in (packages, Path("bin")):
        existing = [path.name for path in (environment / directory).iterdir()]
        shutil.copytree(
            Path(sys.prefix) / directory,
            environment / directory,
            ignore=shutil.ignore_patterns("footplate*", "_editable*", *existing),
            copy_function=_link_or_copy,
            symlinks=True,
            dirs_exist_ok=True,
        )


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)


def _copy_checkout(target: Path) -> None:
    target.mkdir()
    for name in _COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
        else:
            shutil.copy2(source, target / name)
