"""A hosted agent as a program that others reach: https, or a refusal to send tokens unencrypted."""

import ssl
from pathlib import Path

import pytest

from isthmus.a2a import Hosting, ServingError, serve
from support.certificates import make_certificate
from support.hosted_asking_program import Asking
from support.hosted_program import hosted_program
from support.plain_http import plain_client

pytestmark = pytest.mark.anyio


async def test_a_hosted_agent_speaks_https_with_its_certificate(tmp_path: Path, workspace: Path) -> None:
    files = make_certificate(tmp_path)
    certificate = [str(files.certificate), str(files.key)]
    async with (
        hosted_program(tmp_path / "a", workspace, certificate=certificate) as program,
        plain_client(verify=ssl.create_default_context(cafile=files.certificate)) as http,
    ):
        assert program.url.startswith("https://")
        card = (await http.get(program.url + ".well-known/agent-card.json")).json()
        assert card["url"] == program.url
        assert (await http.get(program.url + "metrics")).status_code == 401


def test_a_hosted_agent_sends_no_tokens_unencrypted_to_other_machines(tmp_path: Path, workspace: Path) -> None:
    hosting = Hosting("Asking", folder=tmp_path / "state", workspace=workspace)
    with pytest.raises(
        ServingError, match=r"host 0\.0\.0\.0 can be reached .* give certificate, .* insecure_http=True"
    ):
        serve(Asking(), hosting, host="0.0.0.0")  # noqa: S104 - it is refused
