"""An answer of the agents in these examples: a picture and a line of text below it, as an SVG file."""

import base64
from collections.abc import Sequence
from html import escape

from isthmus.events import ArtifactPart, ArtifactUpdate, Prompt


def pictures_of(message: Prompt | None) -> Sequence[str]:
    """Return the pictures that came with a message, as data: URLs, which models, web pages and SVG files take."""
    parts = message.content if message is not None else ()
    return [
        f"data:{part.media_type};base64,{part.raw}"
        for part in parts
        if part.raw is not None and part.media_type is not None and part.media_type.startswith("image/")
    ]


def picture_card(text: str, picture: str, artifact_id: str = "card") -> ArtifactUpdate:
    """Return a card of a text and a picture, which is a data: URL."""
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="400" height="340">'
        f'<image href="{escape(picture)}" width="400" height="300"/>'
        f'<text x="200" y="325" text-anchor="middle">{escape(text)}</text></svg>\n'
    )
    data = base64.b64encode(svg.encode()).decode()
    return ArtifactUpdate(artifact_id, (ArtifactPart(raw=data, media_type="image/svg+xml", filename="card.svg"),))
