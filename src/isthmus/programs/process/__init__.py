"""The process of a program: its event loop, log and watchdog, and the user's browser."""
