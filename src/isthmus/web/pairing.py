"""Codes that let a browser in once: a short one to type, and a long one in a link. Sans-I/O.

A code names a user, and is worth a device token to whoever shows it first. Wrong codes are counted together, whoever
sends them: a short code cannot be guessed within its minute, and whoever sends wrong ones cannot keep a link out.
Tokens of devices: :mod:`isthmus.a2a.server.users`.
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
"""Maximum number of wrong codes in :data:`WRONG_SECONDS`; then none is accepted until they have passed."""
WRONG_SECONDS = 60.0


class WrongCodeError(IsthmusError):
    """Raised when a code is not known, was used, or is too old."""


class TooManyCodesError(IsthmusError):
    """Raised when too many wrong codes came; ``seconds`` is the time to wait."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"too many wrong codes; wait {seconds:.0f} s and make a new code")
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
        """Whether it is the code of a link, which nobody guesses: wrong codes of others do not keep it out."""
        return len(self.text) > SHORT_LENGTH


@dataclass(slots=True)
class PairingCodes:
    """The codes of one server. All times are in seconds of one monotonic clock."""

    _codes: list[PairingCode] = field(default_factory=list[PairingCode])
    _wrong: list[float] = field(default_factory=list[float])

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
        found = [code for code in self._codes if code.is_long and same_secret(text, code.text)]
        if not found:
            if len(self._wrong) >= MAXIMUM_WRONG:
                raise TooManyCodesError(WRONG_SECONDS - (now - self._wrong[0]))
            typed = text.strip().replace(" ", "").replace("-", "").upper()
            found = [code for code in self._codes if not code.is_long and same_secret(typed, code.text)]
        if not found:
            self._wrong.append(now)
            raise WrongCodeError("this code is wrong, was used, or is too old; make a new one")
        self._codes.remove(found[0])
        return found[0]

    def _add(self, code: PairingCode) -> PairingCode:
        self._codes = [*self._codes[-(MAXIMUM_CODES - 1) :], code]
        return code
