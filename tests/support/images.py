"""Smallest images of each kind, and a clipboard program that gives them."""

import struct
import sys
import zlib
from pathlib import Path


def png(width: int = 2, height: int = 1, more: int = 0) -> bytes:
    """Return a PNG image in grey, with a comment of `more` bytes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress((b"\0" + bytes(width)) * height)
    comment = chunk(b"tEXt", b"Comment\0" + bytes(more)) if more else b""
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + comment + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def jpeg(width: int = 3, height: int = 5) -> bytes:
    """Return the beginning of a JPEG image, with a filling byte before the frame."""
    application = b"\xff\xe0" + struct.pack(">H", 16) + b"JFIF\0" + bytes(9)
    frame = b"\xff\xff\xc2" + struct.pack(">HBHHB", 11, 8, height, width, 1) + b"\x01\x11\0"
    return b"\xff\xd8" + application + frame + b"\xff\xd9"


def gif(width: int = 4, height: int = 6) -> bytes:
    """Return the beginning of a GIF image."""
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\x80\0\0" + bytes(6) + b";"


def webp(chunk: bytes) -> bytes:
    """Return a WebP image with this first chunk."""
    return b"RIFF" + struct.pack("<I", len(chunk) + 4) + b"WEBP" + chunk


def clipboard_program(folder: Path, name: str, body: str) -> Path:
    """Write a program in Python that prints what the clipboard has, and return the folder for `PATH`."""
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(f"#!{sys.executable} -IS\nimport os, subprocess, sys, time\n{body}\n", "utf-8")
    program.chmod(0o700)
    return folder


def image_program(folder: Path, image: Path, name: str = "xclip") -> Path:
    """Write a clipboard program that has the PNG image of a file, and return the folder for `PATH`."""
    body = f"""
if "image/png" not in sys.argv:
    sys.exit(1)
with open({str(image)!r}, "rb") as file:
    sys.stdout.buffer.write(file.read())"""
    return clipboard_program(folder, name, body)
