from pathlib import Path, PurePath
from typing import Any

import pytest

from isthmus.sandbox.bubblewrap import Bubblewrap, command_line
from isthmus.sandbox.guarded_paths import Effect, starting_files, starting_files_at_home
from isthmus.sandbox.mounts import MountKind, PrivatePlaces, SandboxView, WorkspaceCopy, view_of
from isthmus.sandbox.policy import OpenPath, SandboxError, SandboxPolicy

HOME = Path("/home/me")
WORKSPACE = Path("/home/me/project")
SYSTEM = ("/", "/home", "/root", "/run", "/tmp", "/var/tmp", "/etc", "/usr", "/home/me", "/home/me/project")


class Disk:
    """A file system of these folders, files and links, all of them writable."""

    def __init__(self, *paths: str, links: dict[str, str] | None = None, read_only: tuple[str, ...] = ()) -> None:
        self._folders = {Path(path) for path in (*SYSTEM, *(path for path in paths if path.endswith("/")))}
        self._files = {Path(path) for path in paths if not path.endswith("/")}
        self._links = {Path(path): Path(target) for path, target in (links or {}).items()}
        self._sockets: set[Path] = set()
        self._read_only = {Path(path) for path in read_only}

    def resolve(self, path: Path) -> Path:
        for link, target in self._links.items():
            if path == link or link in path.parents:
                return self.resolve(target / path.relative_to(link))
        return path

    def is_folder(self, path: Path) -> bool | None:
        return True if path in self._folders else False if path in self._files else None

    def is_link(self, path: Path) -> bool:
        return path in self._links

    def is_socket(self, path: Path) -> bool:
        return path in self._sockets

    def can_write(self, folder: Path) -> bool:
        return folder not in self._read_only

    def entries(self, folder: Path) -> list[str]:
        return sorted(
            {path.relative_to(folder).parts[0] for path in self._files | self._folders if folder in path.parents}
        )


def view(disk: Disk, *paths: OpenPath, workspace: Path = WORKSPACE, **more: Any) -> SandboxView:
    return view_of(SandboxPolicy(paths=paths), PrivatePlaces(HOME), workspace, disk, **more)


def kinds(found: SandboxView) -> dict[str, MountKind]:
    return {str(mount.path): mount.kind for mount in found.mounts}


def opened(path: str, *, read_only: bool = False) -> OpenPath:
    return OpenPath(path, is_writable=not read_only)


def test_homes_and_temporary_folders_are_empty_and_the_workspace_is_writable() -> None:
    found = view(Disk())
    assert kinds(found.without([mount.path for mount in found.missing])) == {
        "/home": MountKind.EMPTY,
        "/root": MountKind.EMPTY,
        "/run": MountKind.EMPTY,
        "/tmp": MountKind.EMPTY,
        "/var/tmp": MountKind.EMPTY,
        "/home/me": MountKind.EMPTY,
        "/home/me/project": MountKind.WRITABLE,
    }


def test_parents_come_before_what_is_in_them() -> None:
    found = view(Disk("/home/me/.ssh/", "/home/me/.ssh/known_hosts"), opened("~/.ssh/known_hosts"), workspace=HOME)
    paths = [mount.path for mount in found.mounts]
    assert all(paths.index(path) > paths.index(above) for path in paths for above in path.parents if above in paths)
    assert kinds(found)["/home/me/.ssh"] is MountKind.CLOSED
    assert kinds(found)["/home/me/.ssh/known_hosts"] is MountKind.LISTED_WRITABLE


def test_what_is_in_an_empty_folder_is_not_seen_and_what_is_opened_in_it_is() -> None:
    found = view(Disk("/home/me/.cargo/", "/home/me/.cargo/credentials"))
    assert found.shows(Path("/usr/bin/env"))
    assert found.shows(WORKSPACE / "a" / "b")
    assert found.shows(HOME / ".cargo" / "bin")
    assert not found.shows(HOME / "notes")
    assert not found.shows(HOME / ".cargo" / "credentials")
    assert not found.shows(Path("/run/docker.sock"))


@pytest.mark.parametrize("secret", [".ssh/", ".netrc", ".gemini/"])
def test_a_secret_is_closed_wherever_it_would_be_seen(secret: str) -> None:
    disk = Disk(f"/home/me/{secret}")
    path = str(HOME / secret)
    assert path not in kinds(view(disk))
    assert kinds(view(disk, workspace=HOME))[path] in (MountKind.CLOSED, MountKind.PROTECTED)
    assert kinds(view(disk, opened("~", read_only=True)))[path] is MountKind.CLOSED
    assert kinds(view(disk, opened(f"~/{secret}")))[path] is MountKind.LISTED_WRITABLE


def test_the_users_own_gemini_folder_is_closed_also_in_a_workspace_that_is_home() -> None:
    assert kinds(view(Disk("/home/me/.gemini/"), workspace=HOME))["/home/me/.gemini"] is MountKind.CLOSED


def test_a_secret_that_is_a_link_is_closed_where_it_leads() -> None:
    disk = Disk("/etc/keys/", links={"/home/me/.ssh": "/etc/keys"})
    assert kinds(view(disk))["/etc/keys"] is MountKind.CLOSED


def test_our_own_folders_are_closed_but_for_what_is_readable_in_them() -> None:
    disk = Disk("/data/", "/data/outputs/")
    found = view_of(
        SandboxPolicy(), PrivatePlaces(HOME, (Path("/data"),)), WORKSPACE, disk, readable=[Path("/data/outputs")]
    )
    assert kinds(found)["/data"] is MountKind.CLOSED
    assert kinds(found)["/data/outputs"] is MountKind.LISTED_READ_ONLY
    assert not found.shows(Path("/data/journal"))


def test_what_runs_outside_later_is_protected_and_git_cannot_be_renamed() -> None:
    disk = Disk(
        f"{WORKSPACE}/.git/",
        f"{WORKSPACE}/.git/HEAD",
        f"{WORKSPACE}/.git/hooks/",
        f"{WORKSPACE}/.git/config",
        f"{WORKSPACE}/.mcp.json",
    )
    found = kinds(view(disk))
    assert found[f"{WORKSPACE}/.git"] is MountKind.WRITABLE
    for name in (".git/hooks", ".git/config", ".mcp.json"):
        assert found[f"{WORKSPACE}/{name}"] is MountKind.PROTECTED
    found = kinds(view(Disk(f"{WORKSPACE}/.git/", f"{WORKSPACE}/.git/HEAD")))
    assert found[f"{WORKSPACE}/.git/hooks"] is MountKind.PROTECTED


@pytest.mark.parametrize("workspace", [WORKSPACE, HOME])
def test_what_starts_programs_outside_is_protected_where_it_is_missing(workspace: Path) -> None:
    effects = tuple(Effect) if workspace == WORKSPACE else (Effect.AGENT,)
    files = [(name, is_folder) for name, is_folder in starting_files(effects) if len(name.parts) == 1]
    found = {mount.path: mount for mount in view(Disk(), workspace=workspace).mounts}
    for name, is_folder in files:
        mount = found[workspace / name]
        assert (mount.kind, mount.is_folder, mount.is_missing) == (MountKind.PROTECTED, is_folder, True)
    assert len(files) > 15


def test_nothing_has_to_be_made_in_folders_that_cannot_be_written_or_are_missing() -> None:
    assert view(Disk(read_only=(str(WORKSPACE),))).missing == ()
    disk = Disk(f"{WORKSPACE}/.git/", f"{WORKSPACE}/.git/HEAD", read_only=(str(WORKSPACE),))
    made = {mount.path.relative_to(WORKSPACE).as_posix() for mount in view(disk).missing}
    assert made == {".git/config", ".git/config.worktree", ".git/hooks"}
    made = {mount.path for mount in view(Disk(f"{WORKSPACE}/.yarn/")).missing}
    assert WORKSPACE / ".yarn" / "releases" in made
    assert WORKSPACE / ".yarn" / "releases" not in {mount.path for mount in view(Disk()).missing}


@pytest.mark.parametrize("name", [".git", ".claude", ".mcp.json", ".envrc"])
def test_a_link_in_place_of_what_starts_programs_is_refused_unless_it_is_listed(name: str) -> None:
    disk = Disk(links={f"{WORKSPACE}/{name}": "/usr"})
    with pytest.raises(SandboxError, match=f"{name} is a symbolic link"):
        view(disk)
    disk = Disk(f"{WORKSPACE}/inside", links={f"{WORKSPACE}/{name}": f"{WORKSPACE}/inside"})
    assert kinds(view(disk, opened(name)))


@pytest.mark.parametrize("path", [name for name, _ in starting_files_at_home() if len(name.parts) == 1])
def test_what_a_login_starts_is_protected_in_a_home_folder_that_can_be_written(path: PurePath) -> None:
    for found in (view(Disk(), workspace=HOME), view(Disk(), opened("~"))):
        kind = kinds(found)[str(HOME / path)]
        assert kind in (MountKind.PROTECTED, MountKind.CLOSED)
    assert str(HOME / path) not in kinds(view(Disk()))


def test_what_others_act_on_by_themselves_is_protected() -> None:
    names = (
        ".claude/",
        ".vscode/",
        ".qwen/",
        ".envrc",
        "AGENTS.md",
        "it.code-workspace",
        ".github/workflows/",
        ".NPMRC",
    )
    disk = Disk(
        *(
            f"{WORKSPACE}/{name}"
            for name in (*names, ".github/", ".github/ISSUE.md", ".git/", ".git/HEAD", "src/", "a.py")
        )
    )
    found = kinds(view(disk))
    for name in names:
        assert found[f"{WORKSPACE}/{name}".rstrip("/")] is MountKind.PROTECTED
    for name in (".github/ISSUE.md", "src", "a.py"):
        assert f"{WORKSPACE}/{name}" not in found
    assert found[f"{WORKSPACE}/.github"] is MountKind.WRITABLE  # so that it cannot be renamed
    assert found[f"{WORKSPACE}/.git"] is MountKind.WRITABLE
    assert kinds(view(disk, opened(".vscode")))[f"{WORKSPACE}/.vscode"] is MountKind.LISTED_WRITABLE


def test_what_leads_git_elsewhere_is_protected() -> None:
    found = kinds(
        view(
            Disk(
                f"{WORKSPACE}/.git/",
                f"{WORKSPACE}/.git/HEAD",
                f"{WORKSPACE}/.git/commondir",
                f"{WORKSPACE}/.git/config.worktree",
            )
        )
    )
    assert found[f"{WORKSPACE}/.git/commondir"] is MountKind.PROTECTED
    assert found[f"{WORKSPACE}/.git/config.worktree"] is MountKind.PROTECTED


def test_settings_of_the_whole_machine_are_read_only() -> None:
    disk = Disk("/proc/sys/", "/proc/irq/", "/proc/sysrq-trigger")
    found = kinds(view(disk))
    assert [found[path] for path in ("/proc/sys", "/proc/irq", "/proc/sysrq-trigger")] == [MountKind.READ_ONLY] * 3
    assert "/proc/bus" not in found
    line = words(view(disk))
    assert line.index("/proc/sys") > line.index("--proc")


def test_a_git_file_of_a_worktree_cannot_be_pointed_elsewhere() -> None:
    found = kinds(view(Disk(f"{WORKSPACE}/.git")))
    assert found[f"{WORKSPACE}/.git"] is MountKind.PROTECTED
    assert f"{WORKSPACE}/.git/hooks" not in found


def test_a_protected_file_that_is_listed_is_no_mount_so_that_it_can_be_replaced() -> None:
    disk = Disk(f"{WORKSPACE}/.git/", f"{WORKSPACE}/.git/HEAD", f"{WORKSPACE}/.git/config")
    assert f"{WORKSPACE}/.git/config" not in kinds(view(disk, opened(".git/config")))


def test_nothing_is_made_in_a_workspace_that_cannot_be_written() -> None:
    found = kinds(
        view(Disk(f"{WORKSPACE}/.git/", f"{WORKSPACE}/.git/HEAD", read_only=(str(WORKSPACE), f"{WORKSPACE}/.git")))
    )
    assert f"{WORKSPACE}/.gemini" not in found
    assert f"{WORKSPACE}/.git/hooks" not in found


def test_startup_files_are_protected_where_the_home_folder_can_be_written() -> None:
    disk = Disk("/home/me/.bashrc", "/home/me/.local/bin/")
    found = kinds(view(disk, workspace=HOME))
    assert found["/home/me/.bashrc"] is MountKind.PROTECTED
    assert found["/home/me/.local/bin"] is MountKind.PROTECTED
    found = kinds(view(disk))
    assert "/home/me/.bashrc" not in found
    assert found["/home/me/.local/bin"] is MountKind.READ_ONLY


def test_programs_in_the_home_folder_can_be_read() -> None:
    disk = Disk("/home/me/tools/bin/", "/usr/bin/")
    found = kinds(view(disk, programs=[HOME / "tools" / "bin", Path("/usr/bin"), HOME]))
    assert found["/home/me/tools/bin"] is MountKind.READ_ONLY
    assert "/usr/bin" not in found
    assert found["/home/me"] is MountKind.EMPTY


def test_programs_in_what_can_be_written_stay_writable() -> None:
    disk = Disk(f"{WORKSPACE}/.venv/bin/", "/home/me/.local/share/", "/home/me/.local/share/uv/", "/home/me/go/")
    programs = [WORKSPACE / ".venv" / "bin"]
    found = kinds(view(disk, opened("~/.local/share"), programs=programs))
    assert f"{WORKSPACE}/.venv/bin" not in found
    assert "/home/me/.local/share/uv" not in found
    assert found["/home/me/go"] is MountKind.READ_ONLY
    assert "/home/me/go" not in kinds(view(disk, workspace=HOME))


def test_a_listed_link_leads_to_what_is_opened() -> None:
    disk = Disk("/big/cache/", links={"/home/me/.cache": "/big/cache"})
    found = view(disk, opened("~/.cache"))
    assert kinds(found)["/big/cache"] is MountKind.LISTED_WRITABLE
    link = next(mount for mount in found.mounts if mount.kind is MountKind.LINK)
    assert (link.path, link.target) == (HOME / ".cache", Path("/big/cache"))


@pytest.mark.parametrize(
    ("paths", "workspace", "said"),
    [
        ((opened("~/gone"),), WORKSPACE, "~/gone does not exist"),
        ((opened("/"),), WORKSPACE, "would open everything"),
        ((), Path("/"), "the workspace is /"),
    ],
)
def test_what_cannot_be_held_is_refused(paths: tuple[OpenPath, ...], workspace: Path, said: str) -> None:
    with pytest.raises(SandboxError, match=said):
        view(Disk(), *paths, workspace=workspace)


def test_reading_everything_opens_no_home_and_no_secret() -> None:
    found = view(Disk("/etc/shadow"), opened("/", read_only=True))
    assert found.mounts[0].kind is MountKind.LISTED_READ_ONLY
    assert not found.shows(HOME / "notes")
    assert not found.shows(Path("/etc/shadow"))


@pytest.mark.parametrize("name", [".github", ".github/workflows", "AGENTS.md", ".git/hooks"])
@pytest.mark.parametrize("target", ["/home/me/.ssh", "/run/docker.sock", "/home/me"])
def test_a_link_that_was_put_into_the_workspace_opens_nothing(name: str, target: str) -> None:
    disk = Disk(
        "/home/me/.ssh/",
        "/run/docker.sock",
        f"{WORKSPACE}/.git/",
        f"{WORKSPACE}/.git/HEAD",
        links={f"{WORKSPACE}/{name}": target},
    )
    found = view(disk)
    assert not found.shows(HOME / ".ssh")
    assert not found.shows(Path("/run/docker.sock"))
    assert kinds(found)["/home/me"] is MountKind.EMPTY


@pytest.mark.parametrize("name", [".nvm", ".bashrc", ".cargo"])
@pytest.mark.parametrize("target", ["/home/me/.ssh", "/home/me/.ssh/id", "/run/docker.sock", "/etc/shadow"])
def test_a_link_that_was_put_into_the_home_folder_opens_nothing(name: str, target: str) -> None:
    disk = Disk(
        "/home/me/.ssh/", "/home/me/.ssh/id", "/run/docker.sock", "/etc/shadow", links={f"/home/me/{name}": target}
    )
    for workspace in (HOME, WORKSPACE):
        found = view(disk, workspace=workspace)
        assert not found.shows(Path(target))
        assert str(HOME / ".ssh" / "id") not in kinds(found)


def test_a_listed_path_in_the_workspace_that_became_a_link_is_refused() -> None:
    disk = Disk("/home/me/.ssh/", links={f"{WORKSPACE}/cache": "/home/me/.ssh"})
    for named in ("cache", f"{WORKSPACE}/cache"):
        with pytest.raises(SandboxError, match="leads out of the workspace"):
            view(disk, opened(named))


def words(found: SandboxView, version: tuple[int, int, int] = (0, 8, 0), *, has_network: bool = False) -> list[str]:
    bubblewrap = Bubblewrap(Path("/usr/bin/bwrap"), version)
    return list(command_line(bubblewrap, found, ("run", "--it"), folder=WORKSPACE, has_network=has_network))


def test_everything_is_isolated_and_the_command_comes_last() -> None:
    line = words(view(Disk()))
    assert line[0] == "/usr/bin/bwrap"
    assert line[-5:] == ["--chdir", str(WORKSPACE), "--", "run", "--it"]
    for option in ("user", "pid", "ipc", "uts", "net"):
        assert f"--unshare-{option}" in line
    assert {"--die-with-parent", "--disable-userns"} <= set(line)
    assert line[line.index("--cap-drop") + 1] == "ALL"
    assert "--unshare-net" not in words(view(Disk()), has_network=True)


def test_a_system_call_filter_is_opened_by_a_shell_and_no_value_is_in_its_script() -> None:
    bubblewrap = Bubblewrap(Path("/usr/bin/bwrap"), (0, 8, 0))
    line = command_line(
        bubblewrap, view(Disk()), ("run",), folder=WORKSPACE, has_network=False, system_calls=Path("/proc/1/fd/3")
    )
    shell = ("/bin/sh", "-c", 'exec "$@" 9<"$0"', "/proc/1/fd/3", "/usr/bin/bwrap", "--seccomp", "9")
    assert line[: len(shell)] == shell


def test_an_older_bubblewrap_is_not_asked_for_what_it_lacks() -> None:
    line = words(view(Disk()), (0, 6, 1))
    assert "--disable-userns" not in line
    assert "--size" not in line
    assert "--size" in words(view(Disk()))


def test_closed_folders_are_sealed_after_everything_is_in_place() -> None:
    line = words(view(Disk("/home/me/.ssh/", "/home/me/.netrc"), workspace=HOME))
    assert line[line.index("/home/me/.netrc") - 1] == "/dev/null"
    sealed = [line[index + 1] for index, word in enumerate(line) if word == "--remount-ro"]
    assert "/home/me/.ssh" in sealed
    last_mount = max(index for index, word in enumerate(line) if word in ("--tmpfs", "--bind", "--ro-bind"))
    assert line.index("--remount-ro") > last_mount


def test_a_program_sees_a_copy_of_its_workspace_the_system_and_tools_alone() -> None:
    disk = Disk(
        *("/srv/", "/var/", "/data/", "/swapfile", "/opt/tools/bin/", "/data/tools/bin/", "/data/cargo/"),
        *("/home/me/.local/bin/", "/home/me/.gitconfig", "/home/me/.ssh/", "/home/other/", "/home/me/project/bin/"),
        *("/home/me/project/.git/", "/home/me/project/.git/config", "/home/me/project/node_modules/"),
        links={"/lib": "/usr/lib", "/home/me/.cargo": "/data/cargo", "/data/trap": "/home/me", "/data/up": "/home"},
    )
    copy = WorkspaceCopy(
        Path("/data/copy"), (".git", "node_modules"), ((".git/config", Path("/data/config")), (".git/hooks", None))
    )
    programs = [
        Path(path) for path in ("/opt/tools/bin", "/data/tools/bin", "/home/me/project/bin", "/data/trap", "/data/up")
    ]
    found = view(disk, copy=copy, programs=programs)
    mounts = {str(mount.path): mount for mount in found.mounts}
    assert {path: mounts[path].kind for path in ("/srv", "/var", "/data", "/swapfile")} == dict.fromkeys(
        ("/srv", "/var", "/data", "/swapfile"), MountKind.CLOSED
    )
    assert (mounts["/home"].kind, mounts["/home/me"].kind) == (MountKind.EMPTY, MountKind.EMPTY)
    assert not {"/etc", "/usr", "/lib", "/data/cargo", "/home/me/.gitconfig", "/home/other"} & mounts.keys()
    assert mounts["/data/tools/bin"].kind is MountKind.READ_ONLY
    assert mounts["/home/me/.local/bin"].kind is MountKind.READ_ONLY
    inside = {path: (mount.kind, mount.source) for path, mount in mounts.items() if path.startswith(str(WORKSPACE))}
    assert inside == {
        str(WORKSPACE): (MountKind.WRITABLE, Path("/data/copy")),
        f"{WORKSPACE}/.git": (MountKind.PROTECTED, None),
        f"{WORKSPACE}/.git/config": (MountKind.PROTECTED, Path("/data/config")),
        f"{WORKSPACE}/node_modules": (MountKind.PROTECTED, None),
    }
    assert not found.missing
    words = command_line(
        Bubblewrap(Path("/bwrap"), (0, 8, 0)), found, ("sh",), folder=WORKSPACE, has_network=False,
        temporary_bytes=7, around=("unshare",), user=(5, 6),
    )  # fmt: skip
    text = " ".join(words)
    assert text.startswith("unshare /bwrap ")
    assert "--uid 5 --gid 6" in text
    assert "--unshare-net" in text
    assert f"--bind /data/copy {WORKSPACE}" in text
    assert f"--ro-bind /data/config {WORKSPACE}/.git/config" in text
    assert "--size 7 --tmpfs /tmp" in text
