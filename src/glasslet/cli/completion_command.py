"""`glasslet completion`: the script that makes the shell complete commands, options, pods and containers."""

from __future__ import annotations

import click


@click.command("completion")
@click.argument("shell", metavar="bash|zsh|fish", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the completion script for a shell. Names of pods and containers come from the agent.

    bash: eval "$(glasslet completion bash)" in ~/.bashrc. zsh: the same with zsh in ~/.zshrc. fish: glasslet completion
    fish > ~/.config/fish/completions/glasslet.fish
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None, "click has all three"
    # Not `source()`: for bash it starts a bash to look at its version.
    made = kind(ctx.find_root().command, {}, "glasslet", "_GLASSLET_COMPLETE")
    click.echo(made.source_template % made.source_vars())
