"""TLS of connections that are opened: whose certificates are trusted, and that these are read only when needed."""

import ast
import asyncio
import os
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from isthmus.a2a.client.answers import RemoteError
from isthmus.a2a.client.card import authorities
from isthmus.network.client_tls import MAXIMUM_KEPT, client_tls
from support.certificates import CertificateFiles, make_certificate

SOURCE = Path(__file__).resolve().parents[3] / "src" / "isthmus"
pytestmark = pytest.mark.anyio


@asynccontextmanager
async def listening(files: CertificateFiles | None) -> AsyncGenerator[str]:
    """Run a server that answers every request, with TLS if it has a certificate; yield its URL."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        writer.close()
        await writer.wait_closed()

    tls = None
    if files is not None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(files.certificate, files.key)
    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield f"{'http' if files is None else 'https'}://127.0.0.1:{port}/"


async def status(url: str, **environment: str) -> int:
    async with httpx2.AsyncClient(verify=client_tls(environment), trust_env=False) as client:
        return (await client.get(url)).status_code


async def test_a_server_is_checked_against_the_file_of_the_environment(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    files, other = make_certificate(tmp_path), make_certificate(tmp_path / "other")
    async with listening(files) as url:
        assert await status(url, SSL_CERT_FILE=str(files.certificate)) == 204
        for variables in ({"SSL_CERT_FILE": str(other.certificate)}, {"SSL_CERT_DIR": str(tmp_path)}, {}):
            with pytest.raises(httpx2.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
                await status(url, **variables)


async def test_variables_of_other_programs_count_where_those_of_openssl_are_not_set(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    files, other = make_certificate(tmp_path), make_certificate(tmp_path / "other")
    async with listening(files) as url:
        for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"):
            assert await status(url, **{name: str(files.certificate)}) == 204
        with pytest.raises(httpx2.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            await status(url, SSL_CERT_FILE=str(other.certificate), REQUESTS_CA_BUNDLE=str(files.certificate))


async def test_extra_certificates_that_cannot_be_read_are_ignored_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = make_certificate(tmp_path)
    async with listening(files) as url:
        missing = str(tmp_path / "missing.pem")
        assert await status(url, SSL_CERT_FILE=str(files.certificate), NODE_EXTRA_CA_CERTS=missing) == 204
    assert f"the certificates of NODE_EXTRA_CA_CERTS ({missing}) are not used" in caplog.text


def test_a_server_is_checked_by_a_client_that_waits(tmp_path: Path) -> None:
    files = make_certificate(tmp_path)

    async def checked() -> int:
        def ask(url: str) -> int:
            with httpx2.Client(verify=client_tls({"SSL_CERT_FILE": str(files.certificate)}), trust_env=False) as client:
                return client.get(url).status_code

        async with listening(files) as url:
            return await asyncio.to_thread(ask, url)

    assert asyncio.run(checked()) == 204


async def test_a_connection_without_tls_reads_no_authorities(tmp_path: Path) -> None:
    async with listening(None) as url:
        assert await status(url, SSL_CERT_FILE=str(tmp_path / "none.pem")) == 204


@pytest.mark.parametrize("content", [None, "no certificate"])
async def test_authorities_that_cannot_be_read_are_named_by_the_connection(tmp_path: Path, content: str | None) -> None:
    files, broken = make_certificate(tmp_path), tmp_path / "broken.pem"
    if content is not None:
        broken.write_text(content, encoding="utf-8")
    async with listening(files) as url:
        with pytest.raises(
            httpx2.ConnectError, match=r"^no certificates can be read from SSL_CERT_FILE \(.*broken\.pem"
        ):
            await status(url, SSL_CERT_FILE=str(broken))


def test_a_file_that_the_user_named_is_named_in_the_error(tmp_path: Path) -> None:
    with pytest.raises(
        RemoteError, match=rf"^no certificates can be read from the file {tmp_path}/none.pem \(expected"
    ):
        authorities(tmp_path / "none.pem")


def test_connections_share_the_authorities_until_their_file_is_another(tmp_path: Path) -> None:
    file = make_certificate(tmp_path).certificate
    variables = {"SSL_CERT_FILE": str(file)}
    first = client_tls(variables)
    assert client_tls(dict(variables)) is first
    assert first.load() is first.load()
    former = file.stat()
    file.write_text(make_certificate(tmp_path).certificate.read_text("utf-8"), encoding="utf-8")
    os.utime(file, ns=(former.st_atime_ns, former.st_mtime_ns + 1))
    assert client_tls(variables) is not first
    assert client_tls({"SSL_CERT_DIR": str(tmp_path)}) is not client_tls({})


def test_no_more_than_the_maximum_is_kept(tmp_path: Path) -> None:
    first = client_tls({"SSL_CERT_DIR": str(tmp_path)})
    for number in range(MAXIMUM_KEPT):
        client_tls({"SSL_CERT_DIR": str(tmp_path / str(number))})
    assert client_tls({"SSL_CERT_DIR": str(tmp_path)}) is not first


def test_a_context_requires_certificates_from_the_start() -> None:
    tls = client_tls({})
    assert (tls.verify_mode, tls.check_hostname) == (ssl.CERT_REQUIRED, True)
    real = tls.load()
    assert (real.verify_mode, real.check_hostname) == (ssl.CERT_REQUIRED, True)


@pytest.mark.slow
def test_every_http_client_of_the_program_shares_the_authorities() -> None:
    found: list[str] = []
    for path in SOURCE.rglob("*.py"):
        text = path.read_text("utf-8")
        if "httpx2" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                made = node.func.attr in ("AsyncClient", "Client", "AsyncHTTPTransport", "HTTPTransport")
                if made and not {"verify", "transport"} & {keyword.arg for keyword in node.keywords}:
                    found.append(f"{path.relative_to(SOURCE)}:{node.lineno}")
    assert found == []
