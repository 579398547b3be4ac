"""Codes that let a browser in once: a short one to type, and a long one in a link. Sans-I/O.

A code names a user, and is worth a device token to the first browser that shows it. There are 2 to the power of 40
short codes, and each is void after :data:`MAXIMUM_GUESSES` wrong ones: it cannot be guessed within its minute. The
right code is always accepted, so that a sender of wrong ones keeps nobody out. Tokens of devices:
:mod:`isthmus.a2a.server.users.users`.
"""

import secrets
from dataclasses import dataclass, field

from isthmus.errors import IsthmusError
from isthmus.listeners.gate import same_secret
from isthmus.record import record

ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
"""Letters and digits of a short code; none of them looks like another (no 0, O, 1, I)."""
SHORT_LENGTH = 8
SHORT_SECONDS = 60.0
"""Time in seconds in which a short code can be used."""
LINK_SECONDS = 600.0
"""Time in seconds in which the code of a link can be used."""
MAXIMUM_CODES = 100
"""Maximum number of codes that can be used at a time; the oldest are forgotten first."""
MAXIMUM_WRONG = 10
"""Maximum number of wrong codes in :data:`WRONG_SECONDS`; a sender of more is told to wait."""
MAXIMUM_GUESSES = 10_000
"""Maximum number of wrong codes while a short code can be used; then it is void."""
WRONG_SECONDS = 60.0


class WrongCodeError(IsthmusError):
    """Raised when a code is not known, was used, or is too old."""


class TooManyCodesError(IsthmusError):
    """Raised when too many wrong codes came; ``seconds`` is the time to wait."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"too many wrong codes; make a new code, or wait {seconds:.0f} s")
        self.seconds = seconds


@record
class PairingCode:
    """A code for a user (empty: the local user), valid until a time in seconds of the caller's clock.

    ``by`` is the id of the token whose holder made it; empty for the owner at the server's machine.
    """

    text: str
    user: str
    until: float
    by: str = ""

    @property
    def is_long(self) -> bool:
        """Whether it is the code of a link, which nobody guesses."""
        return len(self.text) > SHORT_LENGTH


@dataclass(slots=True)
class PairingCodes:
    """The codes of one server. All times are in seconds of one monotonic clock."""

    _codes: list[PairingCode] = field(default_factory=list[PairingCode])
    _wrong: list[float] = field(default_factory=list[float])
    _guesses: dict[str, int] = field(default_factory=dict[str, int])
    """Number of wrong codes that came while a short code could be used."""

    def short(self, user: str, now: float, by: str = "") -> PairingCode:
        """Return a new code that a person can type; ``by`` is the id of the token whose holder makes it."""
        text = "".join(secrets.choice(ALPHABET) for _ in range(SHORT_LENGTH))
        return self._add(PairingCode(text, user, now + SHORT_SECONDS, by))

    def for_link(self, user: str, now: float) -> PairingCode:
        """Return a new code for the fragment of a link."""
        return self._add(PairingCode(secrets.token_urlsafe(32), user, now + LINK_SECONDS))

    def use(self, text: str, now: float) -> PairingCode:
        """Return the code with this text, which cannot be used again.

        Small letters, spaces and hyphens of a short code are read as people type them.

        Raises:
            WrongCodeError: there is no such code any more.
            TooManyCodesError: too many wrong codes came.
        """
        self._wrong = [at for at in self._wrong if now - at < WRONG_SECONDS]
        self._codes = [code for code in self._codes if code.until > now]
        typed = text.strip().replace(" ", "").replace("-", "").upper()
        found = [code for code in self._codes if same_secret(text if code.is_long else typed, code.text)]
        if found:
            self._codes.remove(found[0])
            return found[0]
        self._guesses = {code.text: self._guesses.get(code.text, 0) + 1 for code in self._codes if not code.is_long}
        self._codes = [code for code in self._codes if self._guesses.get(code.text, 0) < MAXIMUM_GUESSES]
        if len(self._wrong) >= MAXIMUM_WRONG:
            raise TooManyCodesError(WRONG_SECONDS - (now - self._wrong[0]))
        self._wrong.append(now)
        raise WrongCodeError("this code is wrong, was used, or is too old; make a new one")

    def _add(self, code: PairingCode) -> PairingCode:
        self._codes = [*self._codes[-(MAXIMUM_CODES - 1) :], code]
        return code
