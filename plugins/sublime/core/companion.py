"""The companion as a process, and the frames to and from it. Python 3.8 and the standard library only."""

import json
import subprocess
import threading


class Companion:
    """The running companion: its process, and the frames to and from it. `take` gets every message, in its order.

    Both callbacks also get the companion itself: of one that was stopped the last words come when another one runs.
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
        body = json.dumps(dict(message, jsonrpc="2.0")).encode("ascii")
        try:
            with self.lock:
                self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
                self.process.stdin.flush()
        except (OSError, ValueError):
            pass  # it has ended; read() tells

    def read(self):
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
        for line in self.process.stderr:
            print("Isthmus:", line.decode("utf-8", "replace").rstrip())

    def stop(self):
        self.send(id="shutdown", method="shutdown")
        self.send(method="exit")
        try:
            self.process.stdin.close()
        except OSError:
            pass
