"""Conversion of a plugin's positions between its own encoding and the port's UTF-16 code units.

It needs the lines that the positions are in: ``text_of`` returns the text of a file as it is in the editor, None if it
is unknown. Positions in a file of unknown text are not converted.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from isthmus.ide.editor import Diagnostic, OpenFile, Position, Range, Selection
from isthmus.ide.positions import from_encoding, line_at, to_encoding
from isthmus.record import record
from isthmus.text.offsets import OffsetEncoding

TextOf: TypeAlias = Callable[[str], Awaitable[str | None]]


@record
class Recoder:
    """Converts between the port's UTF-16 and ``encoding``."""

    encoding: OffsetEncoding

    async def files(self, files: Sequence[OpenFile], text_of: TextOf) -> tuple[OpenFile, ...]:
        """Return the plugin's open files with positions in UTF-16."""
        if self.encoding is OffsetEncoding.UTF_16:
            return tuple(files)
        return tuple([await self._file(file, text_of) for file in files])

    async def diagnostics(self, found: Sequence[Diagnostic], text_of: TextOf) -> tuple[Diagnostic, ...]:
        """Return the plugin's diagnostics with positions in UTF-16."""
        if self.encoding is OffsetEncoding.UTF_16:
            return tuple(found)
        texts = {path: await text_of(path) for path in {diagnostic.path for diagnostic in found}}
        return tuple(replace(one, range=self._from(texts[one.path], one.range)) for one in found)

    async def to_plugin(self, path: str, at: Range, text_of: TextOf) -> Range:
        """Return a range of the port in the plugin's encoding."""
        if self.encoding is OffsetEncoding.UTF_16 or (text := await text_of(path)) is None:
            return at
        return Range(self._to(text, at.start), self._to(text, at.end))

    async def _file(self, file: OpenFile, text_of: TextOf) -> OpenFile:
        if file.cursor is None and file.selection is None:
            return file
        text = await text_of(file.path)
        selection = file.selection and Selection(self._from(text, file.selection.range), file.selection.text)
        cursor = file.cursor and self._from(text, Range(file.cursor, file.cursor)).start
        return replace(file, cursor=cursor, selection=selection)

    def _from(self, text: str | None, at: Range) -> Range:
        if text is None:
            return at
        places = (at.start, at.end)
        ends = [Position(p.line, from_encoding(line_at(text, p.line)[1], p.character, self.encoding)) for p in places]
        return Range(*ends)

    def _to(self, text: str, place: Position) -> Position:
        return Position(place.line, to_encoding(line_at(text, place.line)[1], place.character, self.encoding))
