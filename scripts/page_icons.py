"""Draws the icons of the workbench as PNG from ``frontend/public/icon.svg``, with the browser of the tests.

A maskable icon fills its square, and keeps the mark inside the circle that systems may cut out.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from support.workbench import chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PUBLIC = Path(__file__).resolve().parent.parent / "frontend" / "public"
GROUND = "#0a6a66"
MASKABLE_SHARE = 0.78
"""Width of the drawn icon as a share of its maskable square: the mark's corners are then in the safe circle."""


def draw(browser: "Browser", name: str, size: int, share: float = 1.0) -> None:
    """Write ``icon.svg`` as a square PNG of ``size`` pixels; with a share below 1 on a ground that fills it."""
    ground = GROUND if share < 1 else "transparent"
    drawn = (PUBLIC / "icon.svg").read_text("utf-8").replace("<svg ", f'<svg width="{size * share}" ', 1)
    body = f"margin:0;height:100vh;display:grid;place-items:center;background:{ground}"
    page = browser.new_page(viewport={"width": size, "height": size})
    page.set_content(f'<body style="{body}">{drawn}</body>')
    page.screenshot(path=PUBLIC / name, omit_background=True)
    page.close()
    sys.stdout.write(f"{PUBLIC / name}\n")


if __name__ == "__main__":
    with chromium() as found:
        draw(found, "icon-192.png", 192)
        draw(found, "icon-512.png", 512)
        draw(found, "icon-maskable-512.png", 512, MASKABLE_SHARE)
