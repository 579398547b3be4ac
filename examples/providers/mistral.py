"""A model provider in 30 lines: Mistral, whose servers speak OpenAI's protocol with keys of their own.

To add it to Isthmus: put MODEL into src/isthmus/models/mistral.py, the names of its keys into
isthmus/model_keys.py, and the record, without its ``module``, into PROVIDERS of models/providers.py. The contract
tests of all providers run on it from here. A provider with a protocol of its own subclasses ``ProviderModel`` instead;
copy models/anthropic.py.
"""

import re

from isthmus.media import JPEG, PNG, WEBP
from isthmus.model_keys import ModelKeys
from isthmus.models.media_rules import MediaRules
from isthmus.models.openai import OpenAIModel
from isthmus.models.providers import Provider

PROVIDER = Provider(
    id="mistral",
    title="Mistral",
    secrets=ModelKeys(("MISTRAL_API_KEY",)),
    base_url_variable="MISTRAL_BASE_URL",
    base_url="https://api.mistral.ai/v1",
    default_model="mistral-large-latest",
    names=re.compile(r"(mistral|codestral|devstral)-", re.IGNORECASE),
    shown_names="mistral-, codestral- or devstral-",
    media=MediaRules(frozenset((PNG, JPEG, WEBP)), 10_000_000, 20_000_000),
    module=__name__,
)
MODEL = OpenAIModel
