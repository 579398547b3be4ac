"""Facts about a model in the settings. Pure."""

from typing import TYPE_CHECKING

from isthmus.record import record

if TYPE_CHECKING:
    from decimal import Decimal


@record
class ModelSetting:
    """Facts that the user's settings state about a model; None leaves one to the table of models.

    ``name`` is as it is written, perhaps with a prefix ``PROVIDER:``. Sizes are in tokens, prices in US dollars for a
    million tokens.
    """

    name: str
    context_window: int | None = None
    max_output_tokens: int | None = None
    input_price: "Decimal | None" = None
    output_price: "Decimal | None" = None
    cache_read_price: "Decimal | None" = None
    cache_write_price: "Decimal | None" = None
    media: frozenset[str] | None = None
    """Kinds of input beside text that the model reads, such as ``image``."""
