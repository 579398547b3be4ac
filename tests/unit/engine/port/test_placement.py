from pathlib import Path

import pytest

from isthmus.client import InvalidRequest
from isthmus.engine.port.placement import EVERY_TASK, Placement
from isthmus.engine.port.workspaces import WorkspaceRule

PLACEMENT = Placement(labels=("disk",), folders=((Path("/srv"), "disk"), (Path("/srv/vision"), "gpu")))


@pytest.mark.parametrize(
    ("workspace", "label"),
    [("/srv/vision/models", "gpu"), ("/srv/vision", "gpu"), ("/srv/visions", "disk"), ("/home", "")],
)
def test_the_deepest_folder_gives_the_label(workspace: str, label: str) -> None:
    assert PLACEMENT.label_of(workspace) == label
    assert EVERY_TASK.label_of(workspace) == ""


def test_a_folder_whose_tasks_run_elsewhere_need_not_be_here(tmp_path: Path) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    placement = Placement(labels=("disk",), folders=((there, "gpu"), (here, "disk")))
    rule = WorkspaceRule(roots=(tmp_path,), elsewhere=placement.elsewhere)
    assert rule.choose({"workspace_path": str(there / "deep")}, None, required=True) == str(there / "deep")
    with pytest.raises(InvalidRequest, match="is not a folder on this machine"):
        rule.choose({"workspace_path": str(here / "deep")}, None, required=True)


@pytest.mark.parametrize("has_roots", [True, False])
def test_a_repository_that_is_not_served_is_refused_with_those_that_are(tmp_path: Path, has_roots: bool) -> None:
    roots = (tmp_path,) if has_roots else ()
    rule = WorkspaceRule(roots=roots, repositories=("/git:app", "/git:site"))
    assert rule.choose({"workspace_path": "/git:app"}, None, required=True) == "/git:app"
    with pytest.raises(
        InvalidRequest, match=r"/git:nope does not name a repository of this server; it has /git:app, /git:site$"
    ):
        rule.choose({"workspace_path": "/git:nope"}, None, required=True)
    with pytest.raises(InvalidRequest, match=r"it has none \(serve --repository\)"):
        WorkspaceRule(roots=roots).choose({"workspace_path": "/git:nope"}, None, required=True)
    if has_roots:
        with pytest.raises(InvalidRequest, match="and below, and the repositories /git:app, /git:site"):
            rule.choose({"workspace_path": "/elsewhere"}, None, required=True)
