"""A self-signed certificate for servers under test."""

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """A self-signed certificate, which is its own authority, and its key; PEM."""

    certificate: Path
    key: Path


def make_certificate(folder: Path, *names: str, addresses: Sequence[str] = ()) -> CertificateFiles:
    """Make a certificate for localhost, 127.0.0.1, ``names`` and ``addresses``, in files of ``folder``."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Isthmus under test")])
    now = datetime.datetime.now(datetime.UTC)
    alternatives = [
        *(x509.IPAddress(ipaddress.ip_address(address)) for address in ("127.0.0.1", *addresses)),
        *(x509.DNSName(name) for name in ("localhost", *names)),
    ]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    files = CertificateFiles(folder / "certificate.pem", folder / "key.pem")
    files.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    encryption = serialization.NoEncryption()
    form = serialization.PrivateFormat.PKCS8
    files.key.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, encryption))
    return files
