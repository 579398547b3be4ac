"""Patches in commands of the shell: which ones are taken for calls of the tool, and which are left to the shell."""

import pytest

from isthmus.tools.edits.patch_text import in_folder
from isthmus.tools.shell.patch_command import is_patch_command, patch_of_command

PATCH = '*** Begin Patch\n*** Add File: a b.txt\n+$x `y` "z"\n*** End Patch'
PLAIN = "*** Begin Patch\n*** Add File: a.txt\n+it is\n*** End Patch"


@pytest.mark.parametrize(
    ("command", "folder", "patch"),
    [
        (f"apply_patch <<'EOF'\n{PATCH}\nEOF", "", PATCH),
        (f"apply_patch << 'EOF'\n{PATCH}\nEOF\n", "", PATCH),
        (f'apply_patch <<"PATCH"\n{PATCH}\nPATCH', "", PATCH),
        (f"applypatch <<'EOF'\n{PATCH}\nEOF", "", PATCH),
        (f"apply_patch <<-'EOF'\n{PATCH}\n\tEOF", "", PATCH),
        (f"apply_patch <<EOF\n{PLAIN}\nEOF", "", PLAIN),
        (f"cd src && apply_patch <<'EOF'\n{PATCH}\nEOF", "src", PATCH),
        (f"cd 'my src' && apply_patch <<'EOF'\n{PATCH}\nEOF", "my src", PATCH),
        (f"cat <<'EOF' | apply_patch\n{PATCH}\nEOF", "", PATCH),
        (f"apply_patch '{PATCH}'", "", PATCH),
        (f'apply_patch "{PLAIN}"', "", PLAIN),
        (
            'apply_patch "*** Begin Patch\n*** Add File: a\n+\\"\\$x\\" \\\\n\n*** End Patch"',
            "",
            '*** Begin Patch\n*** Add File: a\n+"$x" \\n\n*** End Patch',
        ),
        (f"apply_patch \"$(cat <<'EOF'\n{PATCH}\nEOF\n)\"", "", PATCH),
        (["apply_patch", PATCH], "", PATCH),
        (["bash", "-lc", f"apply_patch <<'EOF'\n{PATCH}\nEOF\n"], "", PATCH),
    ],
)
def test_a_command_that_applies_a_patch_is_understood(command: object, folder: str, patch: str) -> None:
    assert patch_of_command(command) == (folder, patch)
    assert is_patch_command(command)


@pytest.mark.parametrize(
    "command",
    [
        f"apply_patch <<EOF\n{PATCH}\nEOF",  # the shell would put values in place of $x and `y`
        f'apply_patch "{PATCH}"',
        f"apply_patch <<'EOF'\n{PATCH}\nEOF\nrm -rf build",
        f"apply_patch <<'EOF' && rm -rf build\n{PATCH}\nEOF",
        f"cd $DIR && apply_patch <<'EOF'\n{PATCH}\nEOF",
        f"cd src; apply_patch <<'EOF'\n{PATCH}\nEOF",
        f"apply_patch --check <<'EOF'\n{PATCH}\nEOF",
        "apply_patch < a.patch",
        "apply_patch 'it'",
        ["apply_patch"],
    ],
)
def test_what_may_mean_something_else_is_left_to_the_shell(command: object) -> None:
    assert patch_of_command(command) is None
    assert is_patch_command(command)


@pytest.mark.parametrize("command", ["grep apply_patch a.py", "./apply_patch", "git apply a.patch", 3, ["ls"], None])
def test_other_commands_are_not_patches(command: object) -> None:
    assert patch_of_command(command) is None
    assert not is_patch_command(command)


def test_the_paths_of_a_patch_are_those_of_the_folder_of_the_command() -> None:
    patch = (
        "*** Begin Patch\n*** Update File: a.py\n*** Move to: ../b.py\n@@\n-*** Add File: x\n+y\n"
        "*** Add File: /w/c.py\n+*** Move to: z\n*** Delete File: ~/d\n*** End Patch"
    )
    assert in_folder(patch, "src/lib") == (
        "*** Begin Patch\n*** Update File: src/lib/a.py\n*** Move to: src/b.py\n@@\n-*** Add File: x\n+y\n"
        "*** Add File: /w/c.py\n+*** Move to: z\n*** Delete File: ~/d\n*** End Patch"
    )
    assert in_folder(patch, "") == patch
