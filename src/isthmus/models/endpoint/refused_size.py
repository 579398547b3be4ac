"""The numbers in a provider's refusal of a request that is too long: how much it takes, and how much it got. Pure.

Each protocol and server has its own words, and some have none. A number that is too small to be a context window is a
mistake of the server: a version of vLLM names the tokens that are left.
"""

import re
from collections.abc import Mapping
from typing import Any

from isthmus.models.port.base import RefusedSize

SMALLEST_WINDOW = 1_024
"""Minimum number of tokens that counts as a context window."""
_NUMBER = r"(\d[\d,]{0,14})"
_LIMITS = tuple(
    re.compile(pattern.replace("N", _NUMBER), re.IGNORECASE)
    for pattern in (
        r"maximum (?:context|prompt) length (?:is|of) N",  # OpenAI, vLLM, OpenRouter, xAI
        r"tokens > N maximum",  # Anthropic
        r"exceed context limit: N \+ N > N",  # Anthropic, with the output; the last number counts
        r"maximum number of tokens allowed \(?N",  # Gemini
        r"available context size \(N",  # llama.cpp
        r"maximum model length of N",  # vLLM
        r"context length \(N tokens\)",  # SGLang, Together
        r"maximum context length \(N\)",
        r"context length (?:is|of) only N",  # vLLM, LM Studio
        r"context size is N",
        r"model with N maximum context length",  # Mistral
        r"model token limit: N",  # Moonshot
        r"token count of \d[\d,]* exceeds the limit of N",  # Copilot
        r"range of input length should be \[\d+, ?N\]",  # Qwen
    )
)
_OUTPUTS = tuple(
    re.compile(pattern.replace("N", _NUMBER), re.IGNORECASE)
    for pattern in (
        r"N (?:in|for) the completion",
        r"plus N '?max_tokens",
        r"requested N output tokens",
        r"exceed context limit: \d[\d,]* \+ N >",
    )
)
_COUNTED = tuple(
    re.compile(pattern.replace("N", _NUMBER), re.IGNORECASE)
    for pattern in (
        r"N (?:in the messages|in your prompt)",
        r"resulted in N tokens",
        r"(?:has|contains|passed|contains at least) N (?:input )?tokens",
        r"requested (?:about )?N tokens",
        r"prompt is too long: N tokens",
        r"exceed context limit: N \+",
        r"input token count \(N\)",
        r"(?:request|input) \(N tokens\)",
        r"prompt \(length N\)",
        r"input length \(N\)",
        r"\(requested: N\)",
        r"token count of N exceeds",
    )
)
_EXCESS = re.compile(r"exceeded (?:max )?context length by N tokens".replace("N", _NUMBER), re.IGNORECASE)  # Ollama


def refused_size(message: str, error: Mapping[str, Any]) -> RefusedSize | None:
    """Return the numbers in a refusal, of its text or its fields; None if it has none that can be used."""
    limit = _field(error, "n_ctx") or _first(_LIMITS, message)
    if limit is not None and limit >= SMALLEST_WINDOW:
        counted = _field(error, "n_prompt_tokens") or _first(_COUNTED, message)
        room = limit - (_first(_OUTPUTS, message) or 0)
        return RefusedSize(limit=room if room >= SMALLEST_WINDOW else limit, counted=counted)
    excess = _first((_EXCESS,), message)
    return None if excess is None else RefusedSize(excess=excess)


def _first(patterns: tuple[re.Pattern[str], ...], message: str) -> int | None:
    found = next((match for pattern in patterns if (match := pattern.search(message))), None)
    return None if found is None else int(found[found.lastindex or 0].replace(",", ""))


def _field(error: Mapping[str, Any], name: str) -> int | None:
    value = error.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
