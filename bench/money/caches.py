"""Prompt caches as their providers document them, and what a request costs. Sans-I/O; times are given in seconds.

- Anthropic (platform.claude.com/docs/en/build-with-claude/prompt-caching): up to four marked ends for 5 minutes or an
  hour; each looks back over 20 blocks for an end that an earlier request wrote; a shortest prefix by model.
- OpenAI from GPT-5.6 (developers.openai.com/api/docs/guides/prompt-caching): the end of the newest message that is not
  the model's is written by itself, and up to three marked ends; the longest of the latest 80 ends is read. 30 minutes.
- OpenAI before: the longest prefix from 1,024 tokens in steps of 128 is read, writing costs nothing. 24 hours with
  ``prompt_cache_retention`` or from GPT-5.5, otherwise 10 minutes after the last use.
- Gemini (ai.google.dev/gemini-api/docs/caching): the longest prefix from a minimum by model. Steps and lifetime are
  not documented: 128 tokens and an hour are taken.

A use renews the lifetime of all that it read.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal, TypeAlias

from bench.money.prompt import BYTES_PER_TOKEN, DAY, HALF_HOUR, HOUR, Prompt, ends
from isthmus.models.catalogue.table import facts_of, snapshot
from isthmus.models.port.base import Usage
from isthmus.models.port.costs import ModelCosts, cost

Owner: TypeAlias = Literal["anthropic", "openai", "gemini"]
STEP_TOKENS = 128
LEAST_TOKENS = 1_024
TEN_MINUTES = 600
MARKS, LOOK_BACK = 4, 20
"""Anthropic: maximum number of marked ends, and of blocks that each one looks at, itself among them."""
CONSIDERED_ENDS, MARKS_BESIDE_IMPLICIT = 80, 3
"""OpenAI: maximum number of ends that are looked at, and of marked ends that are written beside the newest."""
_LEAST_OF_CLAUDE: Sequence[tuple[str, int]] = (
    (r"(opus|fable|mythos)-5", 512),
    (r"opus-4-7", 2_048),
    (r"opus-4-[56]|haiku-4-5", 4_096),
    (r"haiku-3|3-5-haiku|3-haiku", 2_048),
)
_LEAST_OF_GEMINI: Sequence[tuple[str, int]] = ((r"pro", 4_096),)


class RequestRefused(Exception):
    """A request that the provider answers with status 400."""


@dataclass(slots=True)
class _Entry:
    """A cached prefix: until when, and for how many seconds after each use."""

    until: float
    lifetime: int


@dataclass(slots=True)
class PromptCache:
    """Prompts of one account that a provider keeps."""

    _entries: dict[bytes, _Entry] = field(default_factory=dict[bytes, _Entry])

    def count(self, prompt: Prompt, now: float) -> Usage:
        """Return the tokens of a request's input, and keep what the provider keeps.

        Raises:
            RequestRefused: the marks of the request are not allowed.
        """
        match prompt.wire:
            case "anthropic":
                return self._by_marks(prompt, now)
            case "gemini":
                return self._by_steps(prompt, now, least_tokens("gemini", prompt.model), HOUR)
            case "chat" | "responses":
                if _charges_writes(prompt.model):
                    return self._by_messages(prompt, now)
                return self._by_steps(prompt, now, LEAST_TOKENS, _retention(prompt))

    def _by_marks(self, prompt: Prompt, now: float) -> Usage:
        places = list(ends(prompt))
        marks = [place for place, block in enumerate(prompt.blocks) if block.lifetime]
        lifetimes = [prompt.blocks[place].lifetime for place in marks]
        if len(marks) > MARKS:
            raise RequestRefused(f"A maximum of 4 blocks with cache_control may be provided. Found {len(marks)}.")
        if lifetimes != sorted(lifetimes, reverse=True):
            raise RequestRefused("a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block.")
        hit = max((self._behind(places, mark, now) for mark in marks), default=-1)
        self._renew(places[: hit + 1], now)
        read = places[hit][0] if hit >= 0 else 0
        written, for_an_hour = read, read
        for mark in marks:
            size, identity = places[mark]
            if mark <= hit or size < least_tokens("anthropic", prompt.model):
                continue
            lifetime = prompt.blocks[mark].lifetime
            self._entries[identity] = _Entry(now + lifetime, lifetime)
            written = size
            for_an_hour = size if lifetime >= HOUR else for_an_hour
        return Usage(prompt.size, cached=read, cache_write=written - read, cache_write_1h=for_an_hour - read)

    def _behind(self, places: Sequence[tuple[int, bytes]], mark: int, now: float) -> int:
        """Return the place of the longest kept prefix that a mark finds; -1 for none."""
        for place in range(mark, max(-1, mark - LOOK_BACK), -1):
            if self._has(places[place][1], now):
                return place
        return -1

    def _by_messages(self, prompt: Prompt, now: float) -> Usage:
        places = list(ends(prompt))
        implicit = [place for place, block in enumerate(prompt.blocks) if block.is_new and not prompt.is_explicit]
        marked = [place for place, block in enumerate(prompt.blocks) if block.lifetime]
        considered = sorted({*implicit, *marked})[-CONSIDERED_ENDS:]
        hit = next((place for place in reversed(considered) if self._has(places[place][1], now)), -1)
        self._renew(places[: hit + 1], now)
        read = places[hit][0] if hit >= 0 else 0
        number = MARKS if prompt.is_explicit else MARKS_BESIDE_IMPLICIT
        written = read
        for place in sorted({*implicit[-1:], *marked[-number:]}):
            size, identity = places[place]
            if place > hit and size >= LEAST_TOKENS:
                lifetime = prompt.blocks[place].lifetime or HALF_HOUR
                self._entries[identity] = _Entry(now + lifetime, lifetime)
                written = size
        return Usage(prompt.size, cached=read, cache_write=written - read)

    def _by_steps(self, prompt: Prompt, now: float, least: int, lifetime: int) -> Usage:
        steps = list(_steps(prompt))
        found = 0
        for number, identity in enumerate(steps, 1):
            if not self._has(identity, now):
                break
            found = number
        for identity in steps:
            self._entries[identity] = _Entry(now + lifetime, lifetime)
        read = found * STEP_TOKENS
        return Usage(prompt.size, cached=read if read >= least else 0)

    def _has(self, identity: bytes, now: float) -> bool:
        entry = self._entries.get(identity)
        return entry is not None and entry.until > now

    def _renew(self, places: Sequence[tuple[int, bytes]], now: float) -> None:
        for _, identity in places:
            if self._has(identity, now):
                entry = self._entries[identity]
                entry.until = now + entry.lifetime


def least_tokens(owner: Owner, model: str) -> int:
    """Return the number of tokens of the shortest prefix that is cached."""
    patterns = {"anthropic": _LEAST_OF_CLAUDE, "gemini": _LEAST_OF_GEMINI, "openai": ()}[owner]
    return next((least for pattern, least in patterns if re.search(pattern, model)), LEAST_TOKENS)


def owner_of(prompt: Prompt) -> Owner:
    """Return the owner of a prompt's model."""
    return "openai" if prompt.wire in ("chat", "responses") else prompt.wire


def costs_of(owner: Owner, model: str) -> ModelCosts | None:
    """Return the prices of a model on the day of the table of models; None if it has none."""
    facts = facts_of(owner, model)
    return None if facts is None else facts.costs_on(snapshot().date)


def price_of(prompt: Prompt, usage: Usage) -> Decimal | None:
    """Return the US dollars of a request; None if the table does not have a price that it needs."""
    return cost(usage, costs_of(owner_of(prompt), prompt.model))


def _charges_writes(model: str) -> bool:
    """Return whether writing costs something, as it does from GPT-5.6 on."""
    costs = costs_of("openai", model)
    return costs is not None and costs.prices[0].cache_write is not None


def _retention(prompt: Prompt) -> int:
    version = re.search(r"gpt-(\d+)(?:\.(\d+))?", prompt.model)
    is_long = version is not None and (int(version[1]), int(version[2] or 0)) >= (5, 5)
    return DAY if is_long or prompt.retention == "24h" else TEN_MINUTES


def _steps(prompt: Prompt) -> Iterator[bytes]:
    """Yield what identifies each prefix of whole steps."""
    data = b"".join(block.data for block in prompt.blocks)
    digest = hashlib.sha256(f"{prompt.model}\0{prompt.key}".encode())
    size = STEP_TOKENS * BYTES_PER_TOKEN
    for begin in range(0, len(data) - size + 1, size):
        digest.update(data[begin : begin + size])
        yield digest.digest()
