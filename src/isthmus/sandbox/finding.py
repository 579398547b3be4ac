"""The sandbox of this machine, found once, when it is first needed. Thread-safe."""

import threading
from collections.abc import Mapping

from isthmus.sandbox.confinement import Confinement
from isthmus.sandbox.mounts import PrivatePlaces
from isthmus.sandbox.support import NoSandbox, find_support


class SandboxFinder:
    """Finds the sandbox: bubblewrap on the PATH of `environment`, for the user with these `private` places."""

    def __init__(self, private: PrivatePlaces, environment: Mapping[str, str]) -> None:
        self._private = private
        self._environment = environment
        self._lock = threading.Lock()
        self._found: Confinement | NoSandbox | None = None

    def find(self) -> Confinement | NoSandbox:
        """Return the sandbox, or the reason why it is not available. The first call blocks for up to 10 s."""
        with self._lock:
            if self._found is None:
                support = find_support(self._environment)
                self._found = support if isinstance(support, NoSandbox) else Confinement(support, self._private)
            return self._found
