"""Finds the tests nearest to a module: ``nearest_tests.py src/isthmus/journal/sql/posting.py`` prints them.

The rule follows from paths and imports alone, so it holds wherever files move. From near to far:

1. Tests with its path: ``tests/*/x/test_y.py`` and ``test_y_more.py`` belong to ``src/isthmus/x/y.py``. If there is
   no such module, ``test_y.py`` belongs to a ``y.py`` in a folder below.
2. Tests that import it, themselves or through other files of ``tests/``.
3. Tests of its package: in the same folder of ``tests/*/``, or with imports of another module there. If there are none,
   the package above counts.

``scripts/quick_tests.py`` runs tests in this order, and goes on with those that reach the module by more imports.
"""

import re
import sys
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from itertools import takewhile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAXIMUM_PRINTED = 12
"""Maximum number of tests that are printed for a module."""
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)|import[ \t]+([\w.]+))", re.MULTILINE
)
_NAME = re.compile(r"\w+")
_PLACES = ("src", "tests", "scripts", "examples")
"""Folders from which modules are imported."""
_BASES = (Path("src/isthmus"), Path("tests"))
"""Folders whose own names are not part of the path that a module and its tests share."""
_FAR = 1_000


class Nearness(IntEnum):
    """Ways in which a test belongs to a module, from near to far."""

    ITSELF = 0
    PATH = 1
    IMPORT = 2
    PACKAGE = 3
    REACHED = 4
    """Imports lead from it to the module through other modules of the program."""
    APART = 5

    @property
    def words(self) -> str:
        """The same for a reader."""
        return ("the file itself", "same path", "imports it", "same package", "reaches it by imports", "apart")[self]


def modules_of(root: Path) -> Mapping[str, Path]:
    """Return the files of all modules, by the names under which they are imported."""
    found: dict[str, Path] = {}
    for place in _PLACES:
        for path in (root / place).rglob("*.py"):
            if "node_modules" in path.parts:
                continue
            parts = path.relative_to(root / place).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_of(text: str) -> Iterator[str]:
    """Yield the names of modules that a text imports, also those that may be names in a module."""
    for match in _IMPORT.finditer(text):
        if match[3] is not None:
            yield match[3]
            continue
        yield match[1]
        yield from (f"{match[1]}.{name}" for name in _NAME.findall(match[2]))


class Checkout:
    """The modules and tests below a folder as they are now. Imports are read as text: no module is run."""

    def __init__(self, root: Path) -> None:
        self._root = root
        modules = modules_of(root)
        self._importers: defaultdict[Path, set[Path]] = defaultdict(set)
        for path in modules.values():
            for name in imports_of(path.read_text(encoding="utf-8")):
                if (target := modules.get(name)) is not None and target != path:
                    self._importers[target].add(path)
        self._in_tests = {path for path in modules.values() if path.is_relative_to(root / "tests")}
        self._tests = {path: self._place(path) for path in self._in_tests if _is_test(path)}
        self._places = {self._place(path): path for path in modules.values() if path not in self._tests}
        self._of_path: defaultdict[Path, set[Path]] = defaultdict(set)
        """Tests with the path of each module."""
        self._of_packages: dict[Path, Collection[Path]] = {}
        """Tests of the packages that were asked for, by the places of the packages."""
        self._rooms: dict[Path, Path] = {}
        """Place of the package that each test belongs to by its path."""
        for test, place in self._tests.items():
            found = _modules_with_path(place, self._places)
            for module in found:
                self._of_path[module].add(test)
            is_of_package = len(found) == 1 and found[0].name == "__init__.py"
            self._rooms[test] = self._place(found[0]) if is_of_package else place.parent

    def ordered(self, files: Collection[Path]) -> Sequence[tuple[Nearness, Path]]:
        """Return all tests in the order of their nearness to one of `files`; among equals the smallest one first."""
        found = self._near(files)
        reached = self._distances(files)
        for test in self._tests:
            if test not in found:
                found[test] = Nearness.REACHED if test in reached else Nearness.APART
        return self._sorted(found, files, reached)

    def nearest(self, module: Path) -> Sequence[tuple[Nearness, Path]]:
        """Return the tests with the path of a module or an import of it, otherwise the tests of its package."""
        found = self._near([module])
        near = {test: way for test, way in found.items() if way is not Nearness.PACKAGE} or found
        return self._sorted(near, [module], self._distances([module]))

    def has_tests(self, module: Path) -> bool:
        """Return whether there are tests that belong to a module."""
        return bool(self._near([module]))

    def _near(self, files: Collection[Path]) -> dict[Path, Nearness]:
        """Return the tests that belong to one of `files`, each with the nearest way in which it does."""
        found = {test: Nearness.PACKAGE for file in files for test in self._of_package(self._room(file))}
        found |= {test: Nearness.IMPORT for test in self._distances(files, among=self._in_tests) if _is_test(test)}
        found |= {test: Nearness.PATH for file in files for test in self._of_path[file]}
        return found | {test: Nearness.ITSELF for test in files if test in self._tests}

    def _sorted(
        self, tests: Mapping[Path, Nearness], files: Collection[Path], reached: Mapping[Path, int]
    ) -> Sequence[tuple[Nearness, Path]]:
        importers = self._distances(files, among=self._in_tests)
        rooms = [self._room(file) for file in files]

        def order(found: tuple[Nearness, Path]) -> tuple[int, int, int, int, int, Path]:
            way, test = found
            # The test with the very name of a module comes first, then those that say more.
            steps = {Nearness.PATH: len(test.name), Nearness.IMPORT: importers.get(test, _FAR)}.get(way, 0)
            shared = max((_shared_folders(self._rooms[test], room) for room in rooms), default=0)
            return way, steps, -shared, reached.get(test, _FAR), test.stat().st_size, test

        return sorted(((way, test) for test, way in tests.items()), key=order)

    def _place(self, file: Path) -> Path:
        """Return the path that a module and its tests share: ``x/y`` of ``src/isthmus/x/y.py``."""
        path = file.relative_to(self._root)
        base = next((base for base in _BASES if path.is_relative_to(base)), Path())
        path = path.relative_to(base)
        if _is_test(file):
            path = Path(*path.parts[1:]).with_name(path.name.removeprefix("test_"))
        return path.parent if _is_package(file) else path.with_suffix("")

    def _room(self, file: Path) -> Path:
        """Return the place of the package that a file is in."""
        return self._place(file) if _is_package(file) else self._place(file).parent

    def _distances(self, files: Iterable[Path], *, among: Collection[Path] | None = None) -> Mapping[Path, int]:
        """Return how many imports lead from each file to one of `files`, by way of `among` alone if it is given."""
        found = dict.fromkeys(files, 0)
        waiting = deque(found)
        while waiting:
            path = waiting.popleft()
            for importer in self._importers[path]:
                if importer not in found and (among is None or importer in among):
                    found[importer] = found[path] + 1
                    waiting.append(importer)
        return found

    def _of_package(self, place: Path) -> Collection[Path]:
        """Return the tests of a package, or of the nearest one above it; what is in no package has none."""
        if place == Path():
            return ()
        if place not in self._of_packages:
            modules = [module for each, module in self._places.items() if each.is_relative_to(place)]
            importers = {importer for module in modules for importer in self._importers[module]}
            in_folder = {test for test, room in self._rooms.items() if room.is_relative_to(place)}
            tests = in_folder | (importers & self._tests.keys())
            self._of_packages[place] = tests or self._of_package(place.parent)
        return self._of_packages[place]


def _is_test(path: Path) -> bool:
    return path.name.startswith("test_")


def _is_package(path: Path) -> bool:
    return path.name == "__init__.py"


def _shared_folders(one: Path, other: Path) -> int:
    pairs = zip(one.parts, other.parts, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _modules_with_path(place: Path, modules: Mapping[Path, Path]) -> Sequence[Path]:
    """Return the modules that a test belongs to by its own path, `place`; there may be several below its folder."""
    words = place.name.split("_")
    for count in range(len(words), 0, -1):
        if (module := modules.get(place.with_name("_".join(words[:count])))) is not None:
            return [module]
    if place.parent == Path():
        return []
    below = [each for each in modules if each.name == place.name and each.is_relative_to(place.parent)]
    least = min((len(each.parts) for each in below), default=0)
    return [modules[each] for each in below if len(each.parts) == least]


def main(arguments: Sequence[str], root: Path = ROOT) -> int:
    """Print the nearest tests of each module; return 1 if one has none."""
    checkout = Checkout(root)
    is_complete = True
    for argument in arguments:
        module = Path(argument).resolve()
        if not module.is_file() or not module.is_relative_to(root):
            print(f"{argument} is not a file below {root}; name one, as in src/isthmus/events.py", file=sys.stderr)
            is_complete = False
            continue
        found = checkout.nearest(module)
        name = module.relative_to(root)
        match len(found):
            case 0:
                is_complete = False
                print(f"The tests of {name}: none; add one with its path, or one that imports it")
            case 1:
                print(f"1 test file belongs to {name}:")
            case count:
                print(f"{count} test files belong to {name}:")
        for way, test in found[:MAXIMUM_PRINTED]:
            print(f"  {test.relative_to(root)}  ({way.words})")
        if len(found) > MAXIMUM_PRINTED:
            print(f"  and {len(found) - MAXIMUM_PRINTED} more")
    return 0 if is_complete else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
