"""The page /metrics as Prometheus reads it."""

from collections.abc import Callable

from prometheus_client.parser import text_string_to_metric_families

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def samples_of(text: str) -> Samples:
    """Return the samples of a page by name and labels; raises ValueError if Prometheus cannot read it."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def reader_of(text: str) -> Callable[..., float]:
    """Return a function that returns the value of a sample by its name and labels."""
    found = samples_of(text)

    def value(name: str, **labels: str) -> float:
        return found[f"isthmus_{name}", frozenset(labels.items())]

    return value
