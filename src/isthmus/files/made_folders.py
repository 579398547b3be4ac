"""Folders whose files programs make or fetch, by name: packages, virtual environments, builds and caches.

Ignore files usually name them, and nobody keeps anything private in them.
"""

from pathlib import Path

MADE_FOLDERS = frozenset(
    {
        *("node_modules", "bower_components", "vendor", "Pods", "site-packages", ".venv", "venv", ".direnv"),
        *("build", "dist", "out", "target", "bin", "obj", "_build", "_site", "coverage", "htmlcov", "storybook-static"),
        *("__pycache__", ".cache", ".tox", ".nox", ".eggs", ".mypy_cache", ".pytest_cache", ".ruff_cache"),
        *(".next", ".nuxt", ".svelte-kit", ".parcel-cache", ".turbo", ".angular", ".vite", ".gradle", ".dart_tool"),
        *(".yarn", ".pnpm-store", ".terraform", ".bundle", "CMakeFiles", "DerivedData", "elm-stuff", ".stack-work"),
        *(".hypothesis", "dist-newstyle", "cmake-build-debug", "cmake-build-release"),
    }
)


def is_made(folder: Path) -> bool:
    """Return whether the files of a folder are made or fetched, by its name or because it is a virtual environment."""
    name = folder.name
    return name in MADE_FOLDERS or name.endswith((".egg-info", ".dist-info")) or (folder / "pyvenv.cfg").is_file()
