"""Content blocks: the parts of prompts, of texts of the agent, and of results of tools."""

from typing import ClassVar, TypeAlias

from isthmus.record import record


@record
class TextBlock:
    """Text, usually Markdown."""

    TAG: ClassVar = ("type", "text")
    text: str


@record
class ImageBlock:
    """An image; ``data`` is base64."""

    TAG: ClassVar = ("type", "image")
    data: str
    mime_type: str
    uri: str | None = None


@record
class AudioBlock:
    """Sound; ``data`` is base64."""

    TAG: ClassVar = ("type", "audio")
    data: str
    mime_type: str


@record
class ResourceLink:
    """A reference to something that the agent can read by itself; ``size`` is in bytes."""

    TAG: ClassVar = ("type", "resource_link")
    uri: str
    name: str
    mime_type: str | None = None
    title: str | None = None
    description: str | None = None
    size: int | None = None


@record
class ResourceContents:
    """The content of a resource: ``text``, or ``blob`` in base64."""

    uri: str
    mime_type: str | None = None
    text: str | None = None
    blob: str | None = None


@record
class EmbeddedResource:
    """A resource with its content."""

    TAG: ClassVar = ("type", "resource")
    resource: ResourceContents


@record
class UnknownBlock:
    """A block of a type that Isthmus does not know."""

    TAG: ClassVar = ("type", None)
    type: str = ""


ContentBlock: TypeAlias = TextBlock | ImageBlock | AudioBlock | ResourceLink | EmbeddedResource | UnknownBlock
