"""The code blocks of a Markdown page, and a scratch checkout in which they are run in order, as a reader would.

```bash and ```python are run; what a bash block exports, and the directory it ends in, hold for the blocks after it.
```bash background is started and left running until the page ends; the next block waits until it has printed the
text named after `until=`, with underscores for spaces. Any other language (text, json, …) is shown and not run.
"""

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
_BLOCK: Final = re.compile(r"^```(?P<info>[^\n`]+)\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE)
_PASSED: Final = re.compile(r"(?i)(HOME|LANG|UV_.*|SSL_CERT_.*|REQUESTS_CA_BUNDLE|PIP_CERT|(https?|all|no)_proxy)")
_PATIENCE: Final = 120.0
_COPIED: Final = ("src", "bench", "docs", "pyproject.toml", "requirements.lock", "justfile", "README.md", "LICENSE")


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


class Reader:
    """Runs the snippets of one page."""

    def __init__(self, scratch: Path, **environment: str) -> None:
        self._checkout = scratch / "footplate"
        self._state = scratch / "state"
        self._environment = {**_environment(scratch), **environment}
        self._running: list[subprocess.Popen[bytes]] = []
        self._logs = scratch / "logs"
        self._logs.mkdir()
        _copy_checkout(self._checkout)

    def run(self, snippet: Snippet) -> None:
        if "background" in snippet.options:
            self._start(snippet)
        else:
            self._finish(snippet)

    def close(self) -> None:
        for process in reversed(self._running):
            process.send_signal(signal.SIGINT)
            assert process.wait(60) in {0, -signal.SIGINT}, f"{process.args!r} did not end well"

    def _finish(self, snippet: Snippet) -> None:
        # pytest's own limit is longer than this one, so that the page and the line are named.
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
        self._running.append(process)
        awaited = next(option.removeprefix("until=") for option in snippet.options if option.startswith("until="))
        deadline = time.monotonic() + _PATIENCE
        while awaited.replace("_", " ").encode() not in log.read_bytes():
            ended = process.poll() is not None or time.monotonic() > deadline
            assert not ended, f"{snippet.page}:{snippet.line} did not get to {awaited}\n{log.read_text()[-3000:]}"
            time.sleep(0.1)

    def _argv(self, snippet: Snippet) -> list[str]:
        """A shell that begins where the last one ended, and leaves its state for the next."""
        before = f'cd "{self._checkout}"\n[ ! -f "{self._state}" ] || . "{self._state}"\n'
        if snippet.language == "python":
            file = self._logs / f"{snippet.page}-{snippet.line}.py"
            file.write_text(snippet.code)
            return ["bash", "-c", f'{before}exec python "{file}"']
        if "background" in snippet.options:
            return ["bash", "-c", f"{before}exec {snippet.code}"]
        after = f'\n{{ export -p; echo "cd \\"$PWD\\""; }} > "{self._state}"\n'
        return ["bash", "-c", f"set -euo pipefail\n{before}{snippet.code}{after}"]


def _info(info: str) -> tuple[str, Sequence[str]]:
    language, *options = info.split()
    return language, options


def _environment(scratch: Path) -> dict[str, str]:
    uv = shutil.which("uv")
    assert uv is not None, "the pages use uv: install it, or run .ci/run, which does"
    path = f"{Path(uv).parent}:/usr/local/bin:/usr/bin:/bin"
    passed = {name: value for name, value in os.environ.items() if _PASSED.fullmatch(name)}
    own = {f"XDG_{kind.upper()}_HOME": str(scratch / "xdg" / kind) for kind in ("data", "config", "state")}
    return {**passed, **own, "PATH": path, "NO_COLOR": "1", "PYTHONUNBUFFERED": "1"}


def _copy_checkout(target: Path) -> None:
    target.mkdir()
    for name in _COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, target / name)
