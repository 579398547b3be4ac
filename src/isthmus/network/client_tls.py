"""TLS of the connections that this process opens: the certificate authorities that it trusts.

All connections with the same authorities share one context, which reads them at its first handshake: to read a system's
takes 60 ms of processor time, and most connections stay on this machine, without TLS. Not here: certificates of our own
servers, see :mod:`isthmus.a2a.server.listen`.
"""

import logging
import os
import ssl
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from isthmus.record import record

log = logging.getLogger(__name__)

_OTHER_PROGRAMS = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""Variables of other programs for a file or a folder of certificates."""
MAXIMUM_KEPT = 64
"""Maximum number of contexts that are kept for later connections."""


@record
class _Authorities:
    """A file and a folder of certificates as the environment names them; the usual ones of the system without either.

    ``extra`` is a file whose certificates are trusted as well. The stamps tell versions of the files apart.
    """

    file: str | None
    folder: str | None
    stamp: tuple[int, int] | None
    extra: str | None = None
    extra_stamp: tuple[int, int] | None = None
    variable: str | None = None
    """The variable of another program that names the file or folder; None for OpenSSL's."""

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "_Authorities":
        file, folder = environment.get("SSL_CERT_FILE") or None, environment.get("SSL_CERT_DIR") or None
        variable = None
        if file is None and folder is None:
            variable = next((name for name in _OTHER_PROGRAMS if environment.get(name)), None)
        if variable is not None:
            place = environment[variable]
            file, folder = (None, place) if Path(place).is_dir() else (place, None)
        extra = environment.get("NODE_EXTRA_CA_CERTS") or None
        return cls(file, folder, _stamp(file), extra, _stamp(extra), variable)

    def context(self) -> ssl.SSLContext:
        """Read them.

        Raises:
            OSError: they cannot be read, or hold no certificate.
        """
        if self.file or self.folder:
            context = ssl.create_default_context(cafile=self.file, capath=self.folder)
        else:
            import httpx2

            context = httpx2.create_ssl_context(trust_env=False)
        if self.extra:
            try:
                context.load_verify_locations(cafile=self.extra)
            except OSError as error:  # as in Node.js: the others are enough for most connections
                log.warning("the certificates of NODE_EXTRA_CA_CERTS (%s) are not used: %s", self.extra, error)
        return context


def _stamp(file: str | None) -> tuple[int, int] | None:
    """Return the version of a file; None if there is none."""
    try:
        status = Path(file).stat() if file else None
    except (OSError, ValueError):
        return None
    return None if status is None else (status.st_mtime_ns, status.st_size)


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
        """Begin a connection whose bytes the caller moves, as ``ssl.SSLContext`` does.

        Raises:
            SSLError: the authorities cannot be read.
        """
        return self.load().wrap_bio(*args, **options)

    def wrap_socket(self, *args: Any, **options: Any) -> ssl.SSLSocket:
        """Begin a connection on a socket, as ``ssl.SSLContext`` does.

        Raises:
            SSLError: the authorities cannot be read.
        """
        return self.load().wrap_socket(*args, **options)

    def _place(self) -> str:
        found = self._authorities
        if found.variable is not None:
            return f"{found.variable} ({found.file or found.folder})"
        named = {"SSL_CERT_FILE": found.file, "SSL_CERT_DIR": found.folder}
        return " and ".join(f"{name} ({path})" for name, path in named.items() if path) or "the system's authorities"


_lock = threading.Lock()
_kept: dict[_Authorities, ClientTls] = {}


def client_tls(environment: Mapping[str, str] | None = None) -> ClientTls:
    """Return the context for the authorities of an environment, by default this process's.

    They are in the file SSL_CERT_FILE and the folder SSL_CERT_DIR, without either in the file or folder
    REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE, or the system's; the file NODE_EXTRA_CA_CERTS adds its own. A file that was
    written anew has a context of its own.
    """
    authorities = _Authorities.of(os.environ if environment is None else environment)
    with _lock:
        if (known := _kept.get(authorities)) is not None:
            return known
        while len(_kept) >= MAXIMUM_KEPT:
            del _kept[next(iter(_kept))]
        made = _kept[authorities] = ClientTls.trusting(authorities)
        return made
