"""Checks the locked dependencies, and writes the notices of the packages that an installation brings.

``check`` compares requirements/*.txt with pyproject.toml without a network. Each direct dependency must be locked at a
version that it allows, each locked package must have hashes, the files must not contain an address, and the notices
must name the locked packages. ``notices`` writes THIRD_PARTY_NOTICES.md from the metadata of the packages of
requirements/run.txt that are installed here. scripts/lock.sh chooses the versions.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
NOTICES = "THIRD_PARTY_NOTICES.md"
LOCKED_GROUPS = {
    "run.txt": (),
    "dev.txt": ("build", "dev"),
    "floors.txt": ("build", "unit-tests"),
}
"""Files in requirements/ that lock the dependencies of the project, with their dependency groups."""
_NOT_LOCKED = re.compile(r"\w+://|^-")
"""Pattern of an address or an option of pip, which depend on the machine that installs."""
_LICENSE_CLASSIFIER = "License :: OSI Approved :: "
_HEADER = """# Notices of third parties

Isthmus contains no code of others. An installation brings the packages below, each under its own license; the text of
each license is in the package. `make lock` writes this list. Tools that only development and tests use are not in it.

| package | version | license |
|---|---|---|
"""


@dataclass(frozen=True, slots=True)
class Locked:
    """A package in a lock file; `hashes` is the number of files that may be installed."""

    requirement: Requirement
    hashes: int

    @property
    def name(self) -> str:
        """Name of the package in its canonical form."""
        return canonicalize_name(self.requirement.name)

    @property
    def version(self) -> str:
        """Locked version, such as "1.2.3"; empty if the file does not pin one."""
        found = [each.version for each in self.requirement.specifier if each.operator == "=="]
        return found[0] if len(found) == 1 else ""


def read_lock(text: str) -> list[Locked]:
    """Return the packages of a lock file. Raises `packaging.requirements.InvalidRequirement` for any other text."""
    joined = re.sub(r"\\\n", " ", text)
    lines = [line.split(" #")[0] for line in joined.splitlines() if line.strip() and line.lstrip()[0] not in "#-"]
    return [Locked(Requirement(line.split(" --hash")[0]), line.count("--hash=sha256:")) for line in lines]


def problems(root: Path) -> Iterator[str]:
    """Yield a sentence for each fault in the lock files of the checkout at `root`."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    for file in sorted((root / "requirements").glob("*.txt")):
        text = file.read_text("utf-8")
        locked = read_lock(text)
        for line in text.splitlines():
            if not line.lstrip().startswith("#") and _NOT_LOCKED.search(line):
                yield f"{file.name} holds an address or an option of pip, which depend on the machine: {line.strip()}"
        for package in locked:
            if not package.hashes or not package.version:
                yield f"{file.name} does not lock {package.name} by version and hash; run: make lock"
        if file.name in LOCKED_GROUPS:
            groups = project["dependency-groups"]
            wanted = [*project["project"]["dependencies"]]
            wanted += [each for name in LOCKED_GROUPS[file.name] for each in groups[name]]
            yield from _unmet([Requirement(each) for each in wanted], locked, file.name)
        if file.name == "run.txt":
            named = (root / NOTICES).read_text("utf-8")
            for package in locked:
                if f"| {package.name} | {package.version} |" not in named:
                    yield f"{NOTICES} does not name {package.name} {package.version}; run: make lock"


def _unmet(wanted: list[Requirement], locked: list[Locked], file: str) -> Iterator[str]:
    """Yield a sentence for each requirement that no locked package of its name meets."""
    for requirement in wanted:
        versions = [package.version for package in locked if package.name == canonicalize_name(requirement.name)]
        if not any(requirement.specifier.contains(version, prereleases=True) for version in versions):
            found = f"has {', '.join(versions)}" if versions else "does not have it"
            yield f"pyproject.toml asks for {requirement}, and requirements/{file} {found}; run: make lock"


def notices(root: Path) -> str:
    """Return the text of the notices for the packages that are installed here."""
    rows: list[str] = []
    for package in read_lock((root / "requirements" / "run.txt").read_text("utf-8")):
        try:
            found = metadata(package.name)
        except PackageNotFoundError:  # for another platform
            rows.append(f"| {package.name} | {package.version} | see the package: it is not for every platform |")
            continue
        rows.append(f"| {package.name} | {package.version} | {_license(found.get_all('Classifier') or [], found)} |")
    return _HEADER + "\n".join(rows) + "\n"


def _license(classifiers: list[str], found: object) -> str:
    """Return the license that a package's metadata states, in one line."""
    get = getattr(found, "get")  # noqa: B009 - the protocol of importlib.metadata does not have it
    stated = get("License-Expression") or ""
    classified = ", ".join(
        each.removeprefix(_LICENSE_CLASSIFIER) for each in classifiers if each.startswith(_LICENSE_CLASSIFIER)
    )
    first_line = (get("License") or "").strip().partition("\n")[0]
    return stated or classified or first_line or "see the package"


def main(arguments: list[str]) -> int:
    """Run the command line; return the exit code."""
    match arguments:
        case ["check"]:
            found = list(problems(ROOT))
            for problem in found:
                print(problem, file=sys.stderr)
            return 1 if found else 0
        case ["notices"]:
            (ROOT / NOTICES).write_text(notices(ROOT), "utf-8")
            return 0
        case _:
            print("usage: dependencies.py check|notices", file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
