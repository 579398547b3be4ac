"""TLS of the connections that this process opens: the certificate authorities that it trusts.

All connections with the same authorities share one context, which reads them at its first handshake: to read those of
a system takes 60 ms of processor time, and most connections stay on this machine, without TLS. Not here: certificates
of our own servers, see :mod:`isthmus.a2a.server.listen`.
"""

import os
import ssl
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from isthmus.record import record

MAXIMUM_KEPT = 64
"""Maximum number of contexts that are kept for later connections."""


@record
class _Authorities:
    """A file and a folder of certificates as the environment names them; the usual ones of the system without either.

    ``stamp`` tells versions of the file apart.
    """

    file: str | None
    folder: str | None
    stamp: tuple[int, int] | None

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "_Authorities":
        file = environment.get("SSL_CERT_FILE") or None
        try:
            status = Path(file).stat() if file else None
        except (OSError, ValueError):
            status = None
        stamp = None if status is None else (status.st_mtime_ns, status.st_size)
        return cls(file, environment.get("SSL_CERT_DIR") or None, stamp)

    def context(self) -> ssl.SSLContext:
        """Read them.

        Raises:
            OSError: they cannot be read, or hold no certificate.
        """
        if self.file or self.folder:
            return ssl.create_default_context(cafile=self.file, capath=self.folder)
        import httpx2

        return httpx2.create_ssl_context(trust_env=False)


class ClientTls(ssl.SSLContext):
    """A context that reads its authorities at the first handshake, or when it is told to. It requires a certificate.

    httpx takes it as ``verify``. anyio calls `wrap_bio` of a subclass in a thread, so reading holds up nobody.
    """

    _authorities: _Authorities
    _protocols: Sequence[str]
    _lock: threading.Lock
    _context: ssl.SSLContext | None

    @classmethod
    def trusting(cls, authorities: _Authorities) -> "ClientTls":
        """Return a context that has read nothing yet."""
        context = cls(ssl.PROTOCOL_TLS_CLIENT)
        context._authorities, context._protocols = authorities, ()
        context._lock, context._context = threading.Lock(), None
        return context

    def load(self) -> ssl.SSLContext:
        """Read the authorities if that was not done yet, and return the context that has them.

        Raises:
            OSError: they cannot be read, or hold no certificate; the message names the variable.
        """
        with self._lock:
            if self._context is None:
                try:
                    self._context = self._authorities.context()
                except OSError as error:
                    text = f"no certificates can be read from {self._place()} (expected PEM): {error}"
                    # With a number, because an SSLError of a text alone is shown as a tuple.
                    raise ssl.SSLError(ssl.SSL_ERROR_SSL, text) from error
                if self._protocols:
                    self._context.set_alpn_protocols([*self._protocols])
            return self._context

    def set_alpn_protocols(self, alpn_protocols: Iterable[str]) -> None:
        """Offer these protocols in handshakes."""
        with self._lock:
            self._protocols = tuple(alpn_protocols)
            if self._context is not None:
                self._context.set_alpn_protocols([*self._protocols])

    def wrap_bio(self, *args: Any, **options: Any) -> ssl.SSLObject:
        """Begin a connection, as ``ssl.SSLContext`` does.

        Raises:
            SSLError: the authorities cannot be read.
        """
        return self.load().wrap_bio(*args, **options)

    def wrap_socket(self, *args: Any, **options: Any) -> ssl.SSLSocket:
        """Begin a connection, as ``ssl.SSLContext`` does.

        Raises:
            SSLError: the authorities cannot be read.
        """
        return self.load().wrap_socket(*args, **options)

    def _place(self) -> str:
        named = {"SSL_CERT_FILE": self._authorities.file, "SSL_CERT_DIR": self._authorities.folder}
        return " and ".join(f"{name} ({path})" for name, path in named.items() if path) or "the system's authorities"


_lock = threading.Lock()
_kept: dict[_Authorities, ClientTls] = {}


def client_tls(environment: Mapping[str, str] | None = None) -> ClientTls:
    """Return the context for the authorities of an environment, by default that of this process.

    They are in the file SSL_CERT_FILE and the folder SSL_CERT_DIR, or without either those of the system. A file that
    was written anew has a context of its own.
    """
    authorities = _Authorities.of(os.environ if environment is None else environment)
    with _lock:
        if (known := _kept.get(authorities)) is not None:
            return known
        while len(_kept) >= MAXIMUM_KEPT:
            del _kept[next(iter(_kept))]
        made = _kept[authorities] = ClientTls.trusting(authorities)
        return made
