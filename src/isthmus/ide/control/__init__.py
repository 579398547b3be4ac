"""The user beside the editor: commands from another terminal, questions, and who may not answer them."""
