"""Lines of ignore files, made of all special characters, compared with git's own answers."""

import os
import random
import subprocess
from pathlib import Path

import pytest

from isthmus.files.ignore.ignore_file import IgnoreScope
from support.fuzzing import TIMEOUT, cases

pytestmark = pytest.mark.timeout(TIMEOUT)

NAMES = ("a", "b", "ab", "aab", "a.b", "A", "[", "]", "-", "!", "#x", "a b", "a\\", "é", "_", "9", "\x01", " ")
WORDS = ("a", "b", "ab", "a", "b", ".", "A", "é", "-", " ", "9")
SETS = (
    "[ab]", "[!a]", "[^b]", "[a-b]", "[]a]", "[!]]", "[a-]", "[-a]", "[\\]a]", "[\\a-b]", "[a-\\b]", "[[:alpha:]]",
    "[[:digit:][:space:]]", "[![:upper:]]", "[[:punct:]]", "[[:cntrl:]]", "[[:graph:]]", "[[:print:]]", "[[:blank:]]",
    "[[:alnum:]_]", "[[:xdigit:]]", "[[:lower:]-b]", "[[:none:]]", "[[:]", "[[:a]", "[a/]", "[/]", "[!/]", "[b-a]",
    "[é]", "[", "[a", "[]", "[!", "[[:alpha:", "[\\", "[--9]", "[a-b-9]",
)  # fmt: skip
STARS = ("*", "*", "**", "***", "?", "??", "*?", "?*")
SLASHES = ("/", "/", "/", "/**/", "/**/", "**/", "/**", "//", "\\/", "**\\/", "*/")
ESCAPES = ("\\a", "\\*", "\\?", "\\[", "\\\\", "\\", "\\ ", "\\#", "\\!", "\\é")
ENDS = ("", "", "", "", "/", "/", " ", "  ", "\\ ", "\\  ", "\r", "/**", "/*", "\0x", "\\")


def line(chance: random.Random) -> str:
    if chance.random() < 0.03:
        return chance.choice(("", "#a", "!", "/", "!/", "\\", " ", "\r", "**", "**/", "!**", "/**", "\\#x", "\\!"))
    pieces = [
        chance.choice(chance.choices((WORDS, STARS, SLASHES, SETS, ESCAPES), (8, 5, 4, 3, 1))[0])
        for _ in range(chance.randrange(1, 7))
    ]
    start = chance.choice(("", "", "", "", "!", "/", "**/", "!/"))
    return start + "".join(pieces) + chance.choice(ENDS)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("repository")
    chance = random.Random(4)  # noqa: S311 - the same tree each time
    for folder in ("objects", "refs"):
        (root / ".git" / folder).mkdir(parents=True)
    (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    for _ in range(120):
        place = root
        for _ in range(chance.randrange(4)):
            place /= chance.choice(NAMES)
            if place.is_file():
                break
            place.mkdir(exist_ok=True)
        if place.is_dir() and not os.path.lexists(place / (name := chance.choice(NAMES))):
            (place / name).write_bytes(b"")
    return root


def ignored_by_git(root: Path, paths: list[str]) -> set[str]:
    found = subprocess.run(
        ["git", "check-ignore", "-z", "--no-index", "--stdin", "--verbose", "--non-matching"],
        cwd=root,
        input="\0".join(paths).encode() + b"\0",
        capture_output=True,
        check=False,
        env={"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"},
    )
    assert found.returncode in (0, 1), found.stderr
    fields = found.stdout.decode("utf-8", "surrogateescape").split("\0")
    rows = zip(fields[2::4], fields[3::4], strict=False)
    return {path for pattern, path in rows if pattern and not pattern.startswith("!")}


def ignored_by_us(root: Path, paths: list[str]) -> set[str]:
    scope = IgnoreScope(".gitignore").inside(root, "", frozenset({".gitignore"}))

    def is_ignored(path: str) -> bool:
        parts = path.split("/")
        for depth in range(1, len(parts) + 1):
            entry = "/".join(parts[:depth])
            slash = "/" if (root / entry).is_dir() else ""
            if scope.ignores(entry + slash, parts[depth - 1] + slash):
                return True
        return False

    return {path for path in paths if is_ignored(path)}


def test_ignore_files_mean_what_they_mean_to_git(repository: Path) -> None:
    paths = [
        found.relative_to(repository).as_posix()
        for found in sorted(repository.rglob("*"))
        if ".git" not in found.relative_to(repository).parts and found.name != ".gitignore"
    ]
    for chance in cases("ignore patterns", share=0.05, least=20):
        text = "\n".join(line(chance) for _ in range(chance.choice((1, 1, 2, 5)))) + chance.choice(("", "\n"))
        (repository / ".gitignore").write_text(text, encoding="utf-8", newline="")
        assert ignored_by_us(repository, paths) == ignored_by_git(repository, paths), repr(text)
