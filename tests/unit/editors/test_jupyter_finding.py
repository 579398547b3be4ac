"""The Jupyter server that an address means; tests/peers has real ones."""

import json
import os
from pathlib import Path

import pytest

from isthmus.editors.jupyter.finding import find
from isthmus.editors.jupyter.server import ServerAddress
from isthmus.ide.editor import EditorError


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a machine with a server on the default port."""
    said = {"url": "http://localhost:8888/", "token": "of this machine", "root_dir": "/here", "pid": os.getpid()}
    (tmp_path / "jpserver-1.json").write_text(json.dumps(said), encoding="utf-8")
    return {"JUPYTER_RUNTIME_DIR": str(tmp_path)}


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
def test_a_server_of_this_machine_is_known_by_any_name_of_it(environment: dict[str, str], host: str) -> None:
    url = f"http://{host}:8888/"
    assert find(f"{url}lab", (), environment) == ServerAddress(url, "of this machine", "/here", os.getpid())


def test_a_server_elsewhere_is_never_given_the_token_of_one_on_the_same_port_here(environment: dict[str, str]) -> None:
    with pytest.raises(EditorError, match="name the folder with --workspace"):
        find("http://elsewhere.example:8888/lab", (), environment)
    there = find("http://elsewhere.example:8888/lab", ("/mounted",), environment)
    assert there == ServerAddress("http://elsewhere.example:8888/", "", "/mounted")
