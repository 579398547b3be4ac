"""An overlay of a folder: what a program writes goes to another folder, and the folder itself stays as it is.

The kernel's overlayfs, mounted in a user and mount namespace of its own by the programs of util-linux. Whether that
works here is found by trying it once: kernels, file systems and containers differ.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from isthmus.record import record

UPPER, WORK, MERGED = "upper", "work", "merged"
"""Names of the folders of an overlay: what was written, the kernel's own, and the view of both."""
_MOUNT = 'mount -t overlay overlay -o "$1" "$2" && shift 2 && exec "$@"'
_PLAIN = re.compile(r"[^,:\\\x00-\x1f\"']+")
"""Paths that need no escapes in the options of a mount."""


@record
class Overlays:
    """The program that makes namespaces, where overlays work."""

    unshare: Path

    def around(self, lower: Path, place: Path) -> tuple[str, ...]:
        """Return the words before a command that sees `lower` and its own changes at ``merged`` in `place`."""
        options = f"lowerdir={lower},upperdir={place / UPPER},workdir={place / WORK},userxattr"
        namespace = (str(self.unshare), "--user", "--map-root-user", "--mount", "--")
        return (*namespace, "/bin/sh", "-c", _MOUNT, "sh", options, str(place / MERGED))

    def can_show(self, lower: Path, place: Path) -> bool:
        """Return whether these folders can be named in a mount."""
        return all(_PLAIN.fullmatch(str(path)) is not None for path in (lower, place))


def make_folders(place: Path) -> None:
    """Make the folders of an overlay in `place`."""
    for name in (UPPER, WORK, MERGED):
        (place / name).mkdir(mode=0o700, parents=True)


def find_overlays(environment: Mapping[str, str], folder: Path, *, seconds: float = 10.0) -> Overlays | None:
    """Return what makes overlays with their folders below `folder`; None if that does not work here. Blocks."""
    found = shutil.which("unshare", path=environment.get("PATH"))
    if found is None:
        return None
    overlays = Overlays(Path(found).absolute())
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        place = Path(temporary)
        make_folders(place)
        (lower := place / "lower").mkdir()
        (lower / "old").touch()
        check = 'cd "$0" && rm old && echo new > new && test ! -e old'
        words = (*overlays.around(lower, place), "/bin/sh", "-c", check, str(place / MERGED))
        try:
            done = subprocess.run(words, env={"PATH": os.defpath}, capture_output=True, timeout=seconds, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return None
        works = done.returncode == 0 and (lower / "old").exists() and (place / UPPER / "new").is_file()
        subprocess.run(("chmod", "-R", "u+rwx", str(place)), check=False, capture_output=True, timeout=seconds)
    return overlays if works and overlays.can_show(folder, folder) else None
