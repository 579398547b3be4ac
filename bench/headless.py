"""One prompt without a user: `isthmus -p hi` beside `gemini -p hi`, against the same endpoint that answers at once.

Also with the scripted model, where all time is our own overhead.
"""

from statistics import median

from bench.figures import Figure, at_most, beside
from bench.gemini import MODEL, GeminiCli, endpoint
from bench.processes import Usage, clean_home, measure, program

ROUNDS = 3


def run(rounds: int | None) -> list[Figure]:
    """Run interleaved rounds and return medians of CPU and of the largest memory of the process tree."""
    found: dict[str, list[Usage]] = {"isthmus": [], "scripted": [], "gemini": [], "no relaunch": []}
    with clean_home() as environment, endpoint(environment) as url:
        gemini = GeminiCli(environment, url)
        ours = [program("isthmus"), "-p", "hi"]
        with_gemini = {**environment, "GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": url}
        # The first run of each program writes byte code, databases and caches.
        measure([*ours, "-m", f"gemini:{MODEL}"], with_gemini)
        measure(gemini.command("-p", "hi"), gemini.environment)
        for _ in range(rounds or ROUNDS):
            found["isthmus"].append(measure([*ours, "-m", f"gemini:{MODEL}"], with_gemini))
            found["scripted"].append(measure([*ours, "-m", "demo"], environment))
            found["gemini"].append(measure(gemini.command("-p", "hi"), gemini.environment))
            quick = {**gemini.environment, "GEMINI_CLI_NO_RELAUNCH": "1"}
            found["no relaunch"].append(measure(gemini.command("-p", "hi"), quick))
    for name in ("isthmus", "gemini"):
        if any("Hello." not in usage.output for usage in found[name]):
            raise RuntimeError(f"{name} did not print the model's answer: {found[name][0].output[-500:]}")
    cpu = {name: median(usage.cpu for usage in usages) for name, usages in found.items()}
    memory = {name: median(usage.memory for usage in usages) for name, usages in found.items()}
    peer = f"gemini {gemini.version} -p hi"
    return [
        beside("-p hi, CPU", cpu["isthmus"], "s", peer, cpu["gemini"], at_most=0.6),
        beside("-p hi, memory", memory["isthmus"], "MiB", peer, memory["gemini"], at_most=0.4),
        beside("-p hi, CPU", cpu["isthmus"], "s", "the same, NO_RELAUNCH", cpu["no relaunch"]),
        beside("-p hi, memory", memory["isthmus"], "MiB", "the same, NO_RELAUNCH", memory["no relaunch"]),
        at_most("scripted model, CPU", cpu["scripted"], "s", 0.5),
        Figure("scripted model, memory", memory["scripted"], "MiB"),
    ]
