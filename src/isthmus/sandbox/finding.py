"""The sandbox of this machine, looked for when it is first wanted, once. For threads."""

import threading
from collections.abc import Mapping

from isthmus.sandbox.confinement import Confinement
from isthmus.sandbox.mounts import PrivatePlaces
from isthmus.sandbox.support import NoSandbox, find_support


class SandboxFinder:
    """Finds the sandbox: bubblewrap on the PATH of `environment`, around the user with these `private` places."""

    def __init__(self, private: PrivatePlaces, environment: Mapping[str, str]) -> None:
        self._private = private
        self._environment = environment
        self._lock = threading.Lock()
        self._found: Confinement | NoSandbox | None = None

    def find(self) -> Confinement | NoSandbox:
        """Return the sandbox, or why there is none. Blocks, for 10 s at the most, the first time alone."""
        with self._lock:
            if self._found is None:
                support = find_support(self._environment)
                self._found = support if isinstance(support, NoSandbox) else Confinement(support, self._private)
            return self._found
