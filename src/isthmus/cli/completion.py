"""``isthmus completion``: the scripts by which shells complete commands and options of Isthmus.

The scripts are click's. A shell that runs one starts ``isthmus`` at each Tab with ``_ISTHMUS_COMPLETE`` set.
"""

import click
from click.shell_completion import ShellComplete, get_completion_class

from isthmus.errors import IsthmusError

VARIABLE = "_ISTHMUS_COMPLETE"
"""Environment variable that asks the program for completions instead of running it."""
SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print a script that lets a shell complete the commands and options of isthmus.

    \b
    bash: add to ~/.bashrc    eval "$(isthmus completion bash)"
    zsh:  add to ~/.zshrc     eval "$(isthmus completion zsh)"   (after compinit)
    fish: run once            isthmus completion fish > ~/.config/fish/completions/isthmus.fish
    """
    found = get_completion_class(shell)
    if found is None:
        raise IsthmusError(f"click has no completion for {shell}; update the package click")
    click.echo(script(found, context.find_root().command))


def script(kind: type[ShellComplete], command: click.Command) -> str:
    """Return the script of a shell for the command ``isthmus``."""
    complete = kind(command, {}, "isthmus", VARIABLE)
    # Not ShellComplete.source(): it starts bash to ask for its version, which takes longer than all the rest.
    return complete.source_template % complete.source_vars()
