"""Row of the table of settings keys (:mod:`isthmus.settings.keys`). Pure."""

from collections.abc import Sequence
from enum import Enum
from typing import Generic

from isthmus.record import record
from isthmus.settings.settings_file import SettingsSource
from isthmus.settings.trust.items import ItemKind
from isthmus.settings.values import Reader, T_co


class Setter(Enum):
    """Files that may set a key."""

    USER = "only you"
    """Files of the user and the system; no project's."""
    TRUSTED = "a trusted folder"
    """Every file, but a project's only if the user trusts its folder."""
    ANYONE = "any folder"
    """Every file, because the key can only forbid."""


@record
class SettingKey(Generic[T_co]):
    """A key of the settings.

    Attributes:
        name: the name in a file, with dots between the names of objects.
        reader: the form of its values, and how those of several files become one.
        setter: the files that may set it.
        effect: its meaning in words, in Markdown.
        is_shown: whether texts in its value may be shown; other values may contain secrets.
        limit: restriction in words on the value of a project that may set it.
        former_name: name in older files, which still counts; empty for none.
        item: kind of its entries in the question of trust, for a key that a trusted folder may set.
    """

    name: str
    reader: Reader[T_co]
    setter: Setter
    effect: str
    is_shown: bool = False
    limit: str = ""
    former_name: str = ""
    item: ItemKind = ItemKind.SETTING

    def read(self, sources: Sequence[SettingsSource]) -> T_co:
        """Return the value of the files that may set the key, which are in the order in which they count.

        Raises:
            SettingsError: a value has another form; the text names its file and the key.
        """
        return self.reader.read(sources, self.name)
