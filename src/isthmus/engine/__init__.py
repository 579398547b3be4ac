"""Takes leases and runs the next segment of a task; serves those who follow it."""

from isthmus.engine.engine import Engine
from isthmus.engine.runner import EngineOptions

__all__ = ["Engine", "EngineOptions"]
