"""``isthmus plugin``: the paths of the plugins for editors that come with Isthmus, and how to install each."""

from pathlib import Path

import click

import isthmus
from isthmus.errors import IsthmusError
from isthmus.record import record


@record
class Plugin:
    """An editor plugin: its path below the folder of plugins, and how to install it."""

    path: str
    installation: str


PLUGINS = {
    "neovim": Plugin("neovim", 'in init.lua: vim.opt.runtimepath:prepend("{path}")'),
    "emacs": Plugin("emacs/isthmus.el", 'in init.el: (load "{path}") (isthmus-mode 1)'),
    "jupyter": Plugin(
        "jupyter/isthmus.json",
        "copy {path} into ~/.jupyter/jupyter_server_config.d (Isthmus must be installed in Jupyter's environment)",
    ),
    "sublime": Plugin(
        "sublime", "copy the folder {path} to Packages/Isthmus (Preferences > Browse Packages shows Packages)"
    ),
}


@click.command("plugin")
@click.argument("editor", required=False, type=click.Choice(list(PLUGINS)))
def command(editor: str | None) -> None:
    """Print the path of an editor's plugin; without EDITOR list all, each with how to install it.

    A plugin starts the companion with its editor and stops it with it.

    \b
    isthmus plugin neovim
    """
    for name in [editor] if editor else PLUGINS:
        plugin = PLUGINS[name]
        path = plugins_folder() / plugin.path
        click.echo(str(path) if editor else f"{name:8} {plugin.installation.format(path=path)}")


def plugins_folder() -> Path:
    """Return the folder of plugins: in the installed package, or in the checkout that runs.

    Raises:
        IsthmusError: it is in neither.
    """
    package = Path(isthmus.__file__).resolve().parent
    for folder in (package / "plugins", package.parents[1] / "plugins"):
        if folder.is_dir():
            return folder
    raise IsthmusError(f"the plugins are missing; expected them in {package / 'plugins'}. Install Isthmus again")
