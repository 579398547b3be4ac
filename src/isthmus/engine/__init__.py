"""The engine: takes leases, runs the next segment of a task and serves its subscribers."""

from isthmus.engine.engine import Engine
from isthmus.engine.port.options import EngineOptions

__all__ = ["Engine", "EngineOptions"]
