from pathlib import Path

import pytest

from isthmus.client import InvalidRequest
from isthmus.engine.placement import EVERY_TASK, Placement
from isthmus.engine.workspaces import WorkspaceRule

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
