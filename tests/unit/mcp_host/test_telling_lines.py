"""The lines of a server's output that say why it ended: texts as programs print them."""

import pytest

from isthmus.mcp_host.diagnosis.telling_lines import telling_lines

RECORDED: dict[str, tuple[str, list[str]]] = {
    "node, missing module": (
        """node:internal/modules/cjs/loader:1215
  throw err;
  ^

Error: Cannot find module '/home/me/server.js'
    at Module._resolveFilename (node:internal/modules/cjs/loader:1212:15)
    at Module._load (node:internal/modules/cjs/loader:1043:27)
    at node:internal/main/run_main_module:28:49 {
  code: 'MODULE_NOT_FOUND',
  requireStack: []
}

Node.js v20.19.2""",
        ["Error: Cannot find module '/home/me/server.js'"],
    ),
    "node, a variable": (
        """file:///app/dist/index.js:14
    throw new Error("GITHUB_TOKEN is not set");
          ^

Error: GITHUB_TOKEN is not set
    at file:///app/dist/index.js:14:11
    at ModuleJob.run (node:internal/modules/esm/module_job:271:25)

Node.js v22.3.0""",
        ["Error: GITHUB_TOKEN is not set"],
    ),
    "python, missing package": (
        """Traceback (most recent call last):
  File "/usr/lib/python3.11/runpy.py", line 198, in _run_module_as_main
    return _run_code(code, main_globals, None,
  File "/home/me/server.py", line 3, in <module>
    import httpx_missing
ModuleNotFoundError: No module named 'httpx_missing'""",
        ["ModuleNotFoundError: No module named 'httpx_missing'"],
    ),
    "python, usage": (
        "usage: server [-h] --root ROOT\nserver: error: the following arguments are required: --root",
        ["server: error: the following arguments are required: --root"],
    ),
    "usage alone": (
        "Usage: mcp-server-filesystem [allowed-directory] [additional-directories...]",
        ["Usage: mcp-server-filesystem [allowed-directory] [additional-directories...]"],
    ),
    "npm, missing package": (
        """npm error code E404
npm error 404 Not Found - GET https://registry.npmjs.org/@me%2fnothing - Not found
npm error 404
npm error A complete log of this run can be found in: /home/me/.npm/_logs/x-debug-0.log""",
        [
            "npm error code E404",
            "npm error 404 Not Found - GET https://registry.npmjs.org/@me%2fnothing - Not found",
            "npm error 404",
            "npm error A complete log of this run can be found in: /home/me/.npm/_logs/x-debug-0.log",
        ],
    ),
    "docker": (
        "docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?.\n"
        "See 'docker run --help'.",
        ["docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?."],
    ),
    "go": (
        """panic: open /etc/server.yaml: no such file or directory

goroutine 1 [running]:
main.main()
	/src/main.go:17 +0x1d""",
        ["panic: open /etc/server.yaml: no such file or directory"],
    ),
    "java": (
        """Exception in thread "main" java.lang.IllegalStateException: no database
	at com.example.Server.start(Server.java:42)
	at com.example.Server.main(Server.java:12)""",
        ['Exception in thread "main" java.lang.IllegalStateException: no database'],
    ),
    "no error": (
        "starting\none\ntwo\nthree\nfour\nfive\nbye",
        ["starting", "three", "four", "five", "bye"],
    ),
    "frames alone": ("    at a (b.js:1:1)\n    at c (d.js:2:2)", ["    at a (b.js:1:1)", "    at c (d.js:2:2)"]),
    "nothing": ("\n  \n", []),
}


@pytest.mark.parametrize(("output", "told"), RECORDED.values(), ids=RECORDED.keys())
def test_the_reason_is_told_and_not_the_frames(output: str, told: list[str]) -> None:
    assert telling_lines(output.split("\n")) == told


@pytest.mark.parametrize(
    "line",
    [" " * 2000 + "x", "1: " + "a" * 2000, "goroutine 1 " + "[" * 2000, "at " + "a" * 2000, "/" + ":1" * 1000 + "x"],
)
def test_lines_that_are_made_to_take_long_take_no_longer_than_others(line: str) -> None:
    assert telling_lines([line] * 500) == [line] * 5


def test_of_many_errors_the_last_ones_are_told() -> None:
    assert telling_lines([f"error {number}" for number in range(9)]) == [f"error {number}" for number in range(4, 9)]
