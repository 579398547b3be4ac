"""Messages, answers and commands of clients, checked before anything of them is stored."""
