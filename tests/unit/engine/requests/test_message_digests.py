"""The digest of a message: that of its canonical JSON in one piece, as journals of earlier versions have it."""

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.client import PromptMessage
from isthmus.encoding.codec import to_json
from isthmus.engine.requests import repeated_messages
from isthmus.engine.requests.repeated_messages import digest_of
from isthmus.events import ArtifactPart

TEXTS = st.text(st.sampled_from('ab\u00e9"\\\n\u2028\U0001f600\ud800'), max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=30,
)


def whole(message: PromptMessage) -> str:
    content = [message.context_id, message.task_id, message.text, [to_json(part) for part in message.parts]]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode("utf-8", "replace")).hexdigest()


@given(text=TEXTS, raw=TEXTS, data=st.dictionaries(TEXTS, VALUES, max_size=4))
def test_the_pieces_are_those_of_the_whole(text: str, raw: str, data: dict[str, object]) -> None:
    parts = (ArtifactPart(raw=raw, media_type="image/png"), ArtifactPart(data=data), ArtifactPart(text=text))
    message = PromptMessage(text, parts=parts)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("_PIECE", 3), ("_ITEMS", 2), ("_DEPTH", 4)):
            patch.setattr(repeated_messages, name, value)
        assert digest_of(message) == whole(message)


def test_long_texts_and_lists_have_the_same_digest_too() -> None:
    parts = (ArtifactPart(raw="A\u00e9" * 500_000), ArtifactPart(data={"rows": [{"n": n} for n in range(2_500)]}))
    message = PromptMessage("long " * 100_000, parts=parts)
    assert digest_of(message) == whole(message)
