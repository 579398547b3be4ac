"""The README in packages: its links and pictures are addresses, since an index has no files of the repository."""

import re
from dataclasses import dataclass

# An inline link or picture of Markdown whose target is a path: not an address, not a place on the same page.
_TARGET = re.compile(r"(!?)(\[[^\]]*\]\()(?![a-z][a-z0-9+.-]*:|#|//)([^)\s]+)(\))")
_FENCE = re.compile(r"^(```|~~~).*?^\1[ \t]*$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Repository:
    """A public repository: its address without a slash at the end, and the branch or tag that links lead to."""

    url: str
    ref: str

    def page(self, path: str) -> str:
        """Return the address of a page that shows a file or folder."""
        return f"{self.url}/blob/{self.ref}/{path}"

    def raw(self, path: str) -> str:
        """Return the address of a file's content."""
        return f"{self.url}/raw/{self.ref}/{path}"


def with_addresses(text: str, repository: Repository) -> str:
    """Return a README of the repository's root with addresses instead of paths; code blocks stay as they are."""
    parts: list[str] = []
    end = 0
    for block in _FENCE.finditer(text):
        parts += [_addressed(text[end : block.start()], repository), block[0]]
        end = block.end()
    return "".join([*parts, _addressed(text[end:], repository)])


def _addressed(text: str, repository: Repository) -> str:
    def address(found: "re.Match[str]") -> str:
        path = found[3].removeprefix("./")
        return found[1] + found[2] + (repository.raw(path) if found[1] else repository.page(path)) + found[4]

    return _TARGET.sub(address, text)
