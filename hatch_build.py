"""Hooks of the build: the page of the workbench, and the public addresses in the metadata.

The page is in the wheel, so that users never need Node. A source distribution has the built page. In a checkout it is
built if it is missing and Node is there. An editable installation has no page until `make frontend`.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

PAGE = "src/isthmus/web/ui/index.html"
MISSING = (
    "The page of the workbench is not built, and npm, which builds it, was not found: run `make frontend` in the"
    " checkout, then build again."
)


PUBLIC = "packaging/public.toml"
URL_VARIABLE = "ISTHMUS_PUBLIC_URL"
"""Environment variable with the address of the repository, for builds before its owner has set it."""
PAGES = {
    "Documentation": "blob/{ref}/docs/README.md",
    "Changelog": "blob/{ref}/CHANGELOG.md",
    "Issues": "issues",
    "Security": "blob/{ref}/SECURITY.md",
}
"""Project pages by their names in package indexes, below the address of the repository."""


class PublicMetadataHook(MetadataHookInterface):
    """Adds the README and the addresses of the project; without a public address the README stays as it is."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the dynamic fields ``readme`` and ``urls``."""
        root = Path(self.root)
        text = (root / "README.md").read_text("utf-8")
        public = tomllib.loads((root / PUBLIC).read_text("utf-8"))
        url = os.environ.get(URL_VARIABLE) or public["url"]
        metadata["urls"] = {}
        if url:
            readme = _module(root / "packaging" / "readme.py")
            text = readme.with_addresses(text, readme.Repository(url, public["branch"]))
            pages = {name: f"{url}/{path.format(ref=public['branch'])}" for name, path in PAGES.items()}
            metadata["urls"] = {"Source": url, **pages}
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


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


def _module(path: Path) -> Any:
    """Return the module in a file beside this one: the build's own folder is not a package."""
    spec = importlib.util.spec_from_file_location(f"isthmus_packaging_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be loaded; it is part of a checkout and of a source distribution")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look for it there
    spec.loader.exec_module(module)
    return module
