"""Limits and timeouts of a companion, of its reviews and of its servers."""

from dataclasses import dataclass

from isthmus.listeners.limits import ListenerLimits, ServerLimits


@dataclass(frozen=True, slots=True)
class ReviewLimits:
    """Limits of the reviews of a companion."""

    maximum_open: int = 100
    """Maximum number of open reviews, those that wait for their turn included."""
    kept_decisions: int = 50
    """Maximum number of ended reviews, which are only kept for a closeDiff or an answer that crosses the end."""
    kept_characters: int = 16 * 1024 * 1024
    """Maximum length of the proposals of ended reviews together."""
    decision_seconds: float = 1.0
    """Maximum wait for the editor's event after a view is gone."""
    settle_seconds: float = 1.0
    """An agent whose edit was accepted writes the file within this, or does not keep the next review waiting."""
    shutdown_seconds: float = 3.0
    """Maximum time to close all views together, when the companion ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpServerLimits(ServerLimits):
    """Limits of an HTTP server of a companion."""

    descriptor_share: float = 0.25
    head_seconds: float = 10.0
    grace_seconds: float = 2.0
    concurrency: int | None = 256 + 1024
    """With a token, and without."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GeminiServerLimits(HttpServerLimits):
    """Limits of the companion's server for Gemini CLI."""

    keep_alive_seconds: float = 15.0
    """Maximum silence on an event stream."""
    lost_stream_seconds: float = 20.0
    """A client that lost its stream comes back within ten seconds or never; after this its views are closed, and it is
    not listed any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaudeServerLimits(ListenerLimits):
    """Limits of the companion's WebSocket server. ``head_seconds`` is for the whole handshake."""

    descriptor_share: float = 0.25
    head_seconds: float = 10.0
    maximum_clients: int = 64
    maximum_message_bytes: int = 32 * 1024 * 1024
    maximum_unread_bytes: int = 64 * 1024 * 1024
    """A client that lets more pile up is cut off."""
    ping_seconds: float = 30.0
    """Real CLIs send no pings; one that does not answer ours for as long again is gone."""
    close_seconds: float = 2.0
    """Maximum wait for the client's close frame."""


@dataclass(frozen=True, slots=True)
class CompanionLimits:
    """Limits of a companion."""

    diagnostics_seconds: float = 0.9
    """Maximum wait for the editor's diagnostics, and as long again for its open files: real agents ask before each turn
    and after each edit, and wait for the answer without a deadline of their own."""
    housekeeping_seconds: float = 2.0
    """Maximum time that a discovery file which somebody removed is missing."""
    reviews: ReviewLimits = ReviewLimits()
    gemini: GeminiServerLimits = GeminiServerLimits()
    claude: ClaudeServerLimits = ClaudeServerLimits()
