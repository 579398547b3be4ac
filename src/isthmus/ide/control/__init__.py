"""The user outside the editor: commands from another terminal, questions, and the check that no agent answers them."""
