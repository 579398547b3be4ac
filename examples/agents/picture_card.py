"""An answer of the agents in these examples: a picture and a line of text below it, as an SVG file."""

from html import escape


def picture_card(text: str, picture: str) -> bytes:
    """Return a card of a text and a picture, which is a data: URL."""
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="400" height="340">'
        f'<image href="{escape(picture)}" width="400" height="300"/>'
        f'<text x="200" y="325" text-anchor="middle">{escape(text)}</text></svg>\n'
    )
    return svg.encode()
