"""The companion's process, and the frames to and from it. Python 3.8 and the standard library only."""

import json
import subprocess
import threading


class Companion:
    """A running companion. `take` gets each of its messages in order, and `ended` is called when it has ended.

    Both also get the companion itself: messages of a stopped one may still come when another one runs.
    """

    def __init__(self, command, folder, take, ended):
        self.process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.take, self.ended = take, ended
        self.lock = threading.Lock()
        for work in (self.read, self.read_errors):
            threading.Thread(target=work, daemon=True).start()

    def send(self, **message):
        """Send a message; do nothing if the companion has ended."""
        body = json.dumps(dict(message, jsonrpc="2.0")).encode("ascii")
        try:
            with self.lock:
                self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
                self.process.stdin.flush()
        except (OSError, ValueError):
            pass  # it has ended, which read() reports

    def read(self):
        """Read frames until the companion ends."""
        output = self.process.stdout
        while True:
            length = None
            for line in iter(output.readline, b""):
                if line == b"\r\n":
                    break
                name, _, value = line.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
            if length is None:
                return self.ended(self)
            self.take(self, json.loads(output.read(length).decode("utf-8")))

    def read_errors(self):
        """Print what the companion writes to its stderr to Sublime's console."""
        for line in self.process.stderr:
            print("Isthmus:", line.decode("utf-8", "replace").rstrip())

    def stop(self):
        """Ask the companion to end."""
        self.send(id="shutdown", method="shutdown")
        self.send(method="exit")
        try:
            self.process.stdin.close()
        except OSError:
            pass
