import json
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).with_name("minimal_editor.py")


def test_agents_find_the_editor_and_its_file(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("one\n", "utf-8")
    command = [sys.executable, str(PROGRAM), "notes.txt"]
    with subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as editor:
        try:
            assert editor.stdout is not None
            assert editor.stdout.readline() == b"Agents in this folder can find you now.\n"
            status = [sys.executable, "-m", "isthmus", "ide", "status", "--json"]
            done = subprocess.run(status, cwd=tmp_path, capture_output=True, check=True)
            shown = json.loads(done.stdout)
            assert shown["editor"]["display_name"] == "Minimal Editor"
            (file,) = shown["context"]["workspaceState"]["openFiles"]
            assert file["path"] == str(tmp_path / "notes.txt")
        finally:
            editor.terminate()
