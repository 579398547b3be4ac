"""Reads an image from the clipboard by the programs of the desktop: with a deadline, and not more than a message takes.

Isthmus has no window, so that it cannot read the clipboard itself. Which program is used depends on what is installed.
"""

import asyncio
import base64
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from isthmus.media import GIF, JPEG, MAXIMUM_FILE_BYTES, PNG, WEBP
from isthmus.record import record
from isthmus.runtime.processes import end_process, start_process
from isthmus.terminal.prompt.pasted_images import PastedImage, PastedImageError, image_of, too_large

SECONDS = 3.0
"""Maximum time for the programs that read the clipboard."""
POWERSHELL_SECONDS = 10.0
"""The same for PowerShell, whose start alone can take two seconds."""
MAXIMUM_OUTPUT = 2 * MAXIMUM_FILE_BYTES + 1000
"""Maximum number of bytes that are read from a program: an image as hexadecimal digits."""
TYPES = (PNG, JPEG, WEBP, GIF)
"""Types that are requested, in this order: most programs offer PNG."""
NO_IMAGE = "The clipboard has no image. Copy one, or paste the path of an image file."
_PNG_SCRIPT = "get the clipboard as «class PNGf»"
_HEXADECIMAL = re.compile("\u00abdata PNGf([0-9A-Fa-f]*)\u00bb".encode())
_POWERSHELL_SCRIPT = (
    "Add-Type -AssemblyName System.Windows.Forms, System.Drawing;"
    "$image = [System.Windows.Forms.Clipboard]::GetImage();"
    "if ($image) { $stream = New-Object System.IO.MemoryStream;"
    "$image.Save($stream, [System.Drawing.Imaging.ImageFormat]::Png);"
    "[Console]::Out.Write([Convert]::ToBase64String($stream.ToArray())) }"
)


@record
class ClipboardReader:
    """A program that prints an image of the clipboard: its commands in the order of their use, for one type each.

    ``decode`` turns its output into the image's bytes, and raises ValueError if it is something else.
    """

    commands: Sequence[Sequence[str]]
    decode: Callable[[bytes], bytes] = bytes
    seconds: float = SECONDS

    @property
    def name(self) -> str:
        """The program's name."""
        return Path(self.commands[0][0]).name


async def read_clipboard(reader: ClipboardReader) -> PastedImage:
    """Return the image in the clipboard.

    Raises:
        PastedImageError: there is none, it is too large, or the program does not answer.
    """
    try:
        async with asyncio.timeout(reader.seconds):
            for command in reader.commands:
                output = await _output(command)
                if (image := _image(output, reader)) is not None:
                    return image
    except TimeoutError as error:
        raise PastedImageError(
            f"The clipboard was not read: {reader.name} did not end within {reader.seconds:g} s. Try again, or paste"
            " the path of an image file."
        ) from error
    raise PastedImageError(NO_IMAGE)


def find_reader(environment: Mapping[str, str], platform: str) -> ClipboardReader:
    """Return the program that reads the clipboard. ``platform`` is ``sys.platform``.

    Raises:
        PastedImageError: none is installed; the text says which one to install.
    """

    def which(name: str) -> str | None:
        # Not in the folder that the program was started in, which may be a stranger's repository.
        folders = [folder for folder in environment.get("PATH", "").split(os.pathsep) if Path(folder).is_absolute()]
        return shutil.which(name, path=os.pathsep.join(folders)) if folders else None

    if platform == "darwin":
        if found := which("pngpaste"):
            return ClipboardReader([[found, "-"]])
        if found := which("osascript"):
            return ClipboardReader([[found, "-e", _PNG_SCRIPT]], _from_applescript)
        raise PastedImageError("The clipboard cannot be read: install pngpaste (brew install pngpaste).")
    if "WSL_DISTRO_NAME" in environment and (found := which("powershell.exe")):
        command = [found, "-NoProfile", "-NonInteractive", "-STA", "-Command", _POWERSHELL_SCRIPT]
        return ClipboardReader([command], _from_base64, POWERSHELL_SECONDS)
    if environment.get("WAYLAND_DISPLAY") and (found := which("wl-paste")):
        return ClipboardReader([[found, "--no-newline", "--type", kind] for kind in TYPES])
    if environment.get("DISPLAY") and (found := which("xclip")):
        return ClipboardReader([[found, "-selection", "clipboard", "-t", kind, "-o"] for kind in TYPES])
    raise PastedImageError(_what_is_missing(environment))


def _what_is_missing(environment: Mapping[str, str]) -> str:
    if "WSL_DISTRO_NAME" in environment:
        return "The clipboard cannot be read: powershell.exe is not on PATH. Paste the path of an image file."
    if environment.get("WAYLAND_DISPLAY"):
        return "The clipboard cannot be read: install wl-paste (the package wl-clipboard)."
    if environment.get("DISPLAY"):
        return "The clipboard cannot be read: install xclip."
    return "There is no clipboard here, where no desktop runs. Copy the image here as a file, and paste its path."


def _image(output: bytes | None, reader: ClipboardReader) -> PastedImage | None:
    """Return the image in a program's output; None if there is none.

    Raises:
        PastedImageError: it is too large.
    """
    try:
        data = reader.decode(output) if output else b""
    except ValueError:
        return None
    if len(data) > MAXIMUM_FILE_BYTES:
        raise PastedImageError(too_large(f"The content of the clipboard has more than {MAXIMUM_FILE_BYTES:,} bytes"))
    return image_of(data)


async def _output(command: Sequence[str]) -> bytes | None:
    """Return the beginning of what a program prints; None if it cannot be started or fails."""
    try:
        process = await start_process(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except (OSError, ValueError):
        return None
    data = bytearray()
    try:
        while process.stdout is not None and (piece := await process.stdout.read(65_536)):
            data += piece
            if len(data) > MAXIMUM_OUTPUT:
                return bytes(data)
        return bytes(data) if await process.wait() == 0 else None
    finally:
        await end_process(process)


def _from_applescript(output: bytes) -> bytes:
    found = _HEXADECIMAL.search(output)
    if found is None:
        raise ValueError("expected data of the class PNGf")
    return bytes.fromhex(found[1].decode())


def _from_base64(output: bytes) -> bytes:
    return base64.b64decode(output.strip(), validate=True)
