from pathlib import Path
from typing import Any

import pytest

from isthmus.cli.serve import command
from isthmus.cli.serving.replicas import placement, repositories
from isthmus.engine.port.placement import Placement
from isthmus.programs.setup.setup import BadInputError
from isthmus.worktrees.repository_url import RepositoryUrl

NOTHING: dict[str, Any] = {"slots": None, "labels": (), "labelled": (), "lease_seconds": 20.0, "repositories": ()}


def test_the_options_of_a_replica_are_its_placement() -> None:
    options = {**NOTHING, "slots": 3, "labels": ("gpu", "eu-1"), "labelled": ("gpu=/srv/x", "disk=/srv/y")}
    folders = ((Path("/srv/x"), "gpu"), (Path("/srv/y"), "disk"))
    assert placement(options) == Placement(3, ("gpu", "eu-1"), folders, 20.0)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("labels", "two words", "--label 'two words': expected up to 63 letters"),
        ("labels", "", "--label ''"),
        ("labels", "x" * 64, "--label 'xxx"),
        ("labelled", "/srv/x", "expected NAME=DIR with the absolute path"),
        ("labelled", "gpu=srv", "expected NAME=DIR with the absolute path"),
        ("labelled", "a b=/srv", "expected NAME=DIR with the absolute path"),
    ],
)
def test_labels_of_another_form_are_refused(name: str, value: str, said: str) -> None:
    with pytest.raises(BadInputError) as raised:
        placement({**NOTHING, name: (value,)})
    assert said in str(raised.value)


def test_repositories_are_named() -> None:
    given = ("app=git+https://git.example.org/app.git#main", "lib=git+git@example.org:lib.git")
    assert repositories({**NOTHING, "repositories": given}) == {
        "app": RepositoryUrl("https://git.example.org/app.git", "main"),
        "lib": RepositoryUrl("git@example.org:lib.git"),
    }


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("app=/srv/app",), "--repository app: "),
        (("git+https://user:s3cret@h/app.git",), "expected NAME=git+URL[#REF]"),
        (("app=git+ext::sh -c id",), "--repository app: "),
        (("app=git+https://h/a.git", "app=git+https://h/b.git"), "another name for each"),
    ],
)
def test_repositories_of_another_form_are_refused(given: tuple[str, ...], said: str) -> None:
    with pytest.raises(BadInputError) as raised:
        repositories({**NOTHING, "repositories": given})
    assert said in str(raised.value)
    assert "s3cret" not in str(raised.value)


def test_a_repository_with_another_agent_is_refused_with_the_reason_and_advice(tmp_path: Path) -> None:
    options = ["--repository", "app=git+https://h/a.git", "--agent", "some-agent --acp", "--data-dir", str(tmp_path)]
    with pytest.raises(BadInputError) as raised:
        command.main(options, standalone_mode=False)
    assert "only Isthmus's own agent tells of its calls" in str(raised.value)
    assert "give it a clone of the repository by --workspace DIR" in str(raised.value)
