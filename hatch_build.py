"""Build hook of the wheel: the page of the workbench is in it, so that users never need Node.

A source distribution has the built page. In a checkout it is built if it is missing and Node is there. An editable
installation has no page until `make frontend`.
"""

import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PAGE = "src/isthmus/web/ui/index.html"
MISSING = (
    "The page of the workbench is not built, and npm, which builds it, was not found: run `make frontend` in the"
    " checkout, then build again."
)


class PageBuildHook(BuildHookInterface):
    """Builds the page if it is missing."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the page before the wheel or the source distribution is packed."""
        del build_data
        root = Path(self.root)
        if version == "editable" or (root / PAGE).is_file():
            return
        npm = shutil.which("npm")
        if npm is None or not (root / "frontend" / "package.json").is_file():
            raise SystemExit(MISSING)
        for command in (["ci", "--ignore-scripts", "--no-audit", "--no-fund"], ["run", "build"]):
            subprocess.run([npm, *command], cwd=root / "frontend", check=True)
