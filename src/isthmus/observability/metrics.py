"""Counts the work of a server for its operators, as it happens. What is counted when the page is read: see `page`."""

import contextlib
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager
from contextvars import ContextVar

from typing_extensions import override

from isthmus.observability.exposition import Counter, Family, Histogram
from isthmus.runtime.telemetry import ModelCall, Operation, PushAttempt, ServedRequest, TaskSegment, Telemetry, ToolRun
from isthmus.text.money import in_dollars

VERBS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_BRIEF = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)
_TOKENS = tuple(4.0**power for power in range(14))
"""Bounds that the conventions of OpenTelemetry give for tokens."""
_USER: ContextVar[str] = ContextVar("isthmus_user_of_segment", default="")
"""Name of the user whose task is at work in this context; empty for the local one."""
_WORK = (0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0)


class WorkMetrics(Telemetry):
    """Counters and histograms of a server's work since its start. ``clock`` returns monotonic seconds.

    The cost of ``users`` users is counted by name, the cost of others is counted together; 0 for no count by user.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, users: int = 0) -> None:
        self._clock = clock
        self._users = users
        self._queue = Histogram(
            "isthmus_queue_seconds", "Time for which tasks waited for a process before work on them began.", _BRIEF
        )
        self._segments = Histogram(
            "isthmus_segment_seconds",
            "Time of work on a task until it asked or ended, by its state then; interrupted: the work was broken off.",
            _WORK,
            ("state",),
        )
        self._tokens = Histogram(
            "isthmus_model_request_tokens",
            "Tokens of requests to models that were answered; input includes cached ones.",
            _TOKENS,
            ("direction", "provider", "model"),
        )
        self._models = Histogram(
            "isthmus_model_seconds",
            "Time of requests to models with all their attempts, by result: ok, or the kind of the failure.",
            _WORK,
            ("provider", "model", "result"),
        )
        self._costs = Counter(
            "isthmus_model_cost_usd_total",
            "Cost of requests to models in US dollars, by the prices at their time.",
            ("provider", "model"),
        )
        self._user_costs = Counter(
            "isthmus_user_cost_usd_total",
            "Cost of requests to models in US dollars by user; empty: the local one.",
            ("user",),
            most=users,
        )
        self._cached = Counter(
            "isthmus_model_cached_tokens_total",
            "Tokens of the input of models that their providers read from a cache.",
            ("provider", "model"),
        )
        self._unpriced = Counter(
            "isthmus_model_requests_without_price_total",
            "Requests to models that were answered and whose cost is not known.",
            ("provider", "model"),
        )
        self._tools = Counter(
            "isthmus_tool_calls_total",
            "Calls of tools that ran, by kind of effect (mcp: a tool of an MCP server) and result.",
            ("kind", "status"),
        )
        self._requests = Counter(
            "isthmus_http_requests_total",
            "Requests that were answered, by method of A2A (or of HTTP, if there is none) and HTTP status.",
            ("method", "code"),
        )
        self._pushes = Counter(
            "isthmus_push_attempts_total",
            "Attempts to deliver push notifications: delivered, failed and tried again, or given-up.",
            ("outcome",),
        )
        self._lag = Histogram(
            "isthmus_push_lag_seconds", "Time from the change of a task to its delivered push notification.", _BRIEF
        )

    @override
    def measure(self, operation: Operation) -> AbstractContextManager[object]:
        if isinstance(operation, TaskSegment) and operation.queued_seconds is not None:
            self._queue.observe(operation.queued_seconds)
        return self._measured(operation)

    @contextlib.contextmanager
    def _measured(self, operation: Operation) -> Generator[None]:
        began = self._clock()
        former = _USER.set(operation.user) if isinstance(operation, TaskSegment) else None
        try:
            yield
        finally:
            if former is not None:
                _USER.reset(former)
            seconds = self._clock() - began
            match operation:
                case ServedRequest(verb, _, _, method):
                    verb = verb if verb in VERBS else "other"
                    self._requests.add(method or verb, str(operation.status))
                case TaskSegment():
                    self._segments.observe(seconds, operation.state or "interrupted")
                case ModelCall(provider, model):
                    result = operation.failure or ("ok" if operation.finish or operation.answer else "interrupted")
                    self._models.observe(seconds, provider, model, result)
                    if operation.answer is not None or operation.output_tokens:
                        self._tokens.observe(operation.input_tokens, "input", provider, model)
                        self._tokens.observe(operation.output_tokens, "output", provider, model)
                        self._cached.add(provider, model, amount=operation.cached_tokens)
                        if operation.cost is None:
                            self._unpriced.add(provider, model)
                        else:
                            cost = in_dollars(operation.cost)
                            self._costs.add(provider, model, amount=cost)
                            if self._users:
                                self._user_costs.add(_USER.get(), amount=cost)
                case ToolRun(_, kind):
                    self._tools.add("mcp" if operation.server else kind, operation.status or "canceled")

    @override
    def queued(self, task_id: str) -> None: ...

    @override
    def pushed(self, attempt: PushAttempt) -> None:
        self._pushes.add(attempt.outcome)
        if attempt.outcome == "delivered":
            self._lag.observe(attempt.lag_seconds)

    def families(self) -> Iterator[Family]:
        """Yield the metrics of this moment."""
        yield self._queue.family()
        yield self._segments.family()
        yield self._tokens.totals("isthmus_model_tokens_total", "Tokens of models; input includes cached ones.")
        yield self._cached.family()
        yield self._costs.family()
        if self._users:
            yield self._user_costs.family()
        yield self._unpriced.family()
        for metric in (self._tokens, self._models, self._tools, self._requests, self._pushes, self._lag):
            yield metric.family()
