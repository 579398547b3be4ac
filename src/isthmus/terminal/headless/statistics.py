"""Statistics of a task in the JSON shapes of Gemini CLI, so that scripts written for it keep working.

What Gemini CLI does not have is costs: in US dollars, and null if one of the requests has no known price.

``session_metrics`` is ``stats`` of ``-o json`` (SessionMetrics in packages/core/src/telemetry/uiTelemetry.ts there),
``stream_stats`` the one of the ``result`` line of ``-o stream-json`` (StreamStats in
packages/core/src/output/types.ts). Token counts are 0 if the agent does not report them, as a remote one may not.
"""

from collections.abc import Iterable
from typing import Any

from isthmus.development_tool import FileDiff, ToolCallStatus
from isthmus.questions import ELICITATION, SAMPLING
from isthmus.task_view import CallView, ModelUsage, TaskView, total_usage, unpriced_models
from isthmus.terminal.diff import changed_lines
from isthmus.text.money import in_dollars

Counts = dict[str, Any]


def session_metrics(view: TaskView) -> dict[str, Any]:
    """Return ``{"models": {name: ...}, "tools": {...}, "files": {...}}``; durations are whole milliseconds."""
    calls = _tool_calls(view)
    by_name: dict[str, list[CallView]] = {}
    for call in calls:
        by_name.setdefault(call.call.tool_name, []).append(call)
    total = _tool_counts(calls)
    added, removed = _lines(call.call.output.diff for call in calls if call.call.output and call.call.output.diff)
    return {
        "models": {name: _model_metrics(usage) for name, usage in view.models.items()},
        "tools": {
            "totalCalls": total["count"],
            "totalSuccess": total["success"],
            "totalFail": total["fail"],
            "totalDurationMs": total["durationMs"],
            "totalDecisions": total["decisions"],
            "byName": {name: _tool_counts(named) for name, named in by_name.items()},
        },
        "files": {"totalLinesAdded": added, "totalLinesRemoved": removed},
        "total_cost_usd": _cost(total_usage(view.models.values())),
        "models_without_price": list(unpriced_models(view.models)),
    }


def stream_stats(view: TaskView, duration: float) -> dict[str, float | None]:
    """Return the sums over all models; ``duration`` is in seconds."""
    models = view.models.values()
    prompt = sum(usage.input_tokens for usage in models)
    output = sum(usage.output_tokens for usage in models)
    cached = sum(usage.cached_tokens for usage in models)
    return {
        "total_tokens": prompt + output,
        "input_tokens": prompt,
        "output_tokens": sum(_candidates(usage) for usage in models),
        "cached": cached,
        "input": max(0, prompt - cached),
        "duration_ms": _milliseconds(duration),
        "tool_calls": len(_tool_calls(view)),
        "total_cost_usd": _cost(total_usage(models)),
    }


def _tool_calls(view: TaskView) -> list[CallView]:
    """Return the calls that ended, without the questions of servers."""
    calls = [call for call in view.calls.values() if call.call.status.is_final]
    return [call for call in calls if call.call.tool_name not in (ELICITATION, SAMPLING)]


def _model_metrics(usage: ModelUsage) -> dict[str, Any]:
    return {
        "api": {
            "totalRequests": usage.requests,
            "totalErrors": usage.errors,
            "totalLatencyMs": _milliseconds(usage.latency),
        },
        "tokens": {
            "input": max(0, usage.input_tokens - usage.cached_tokens),
            "prompt": usage.input_tokens,
            "candidates": _candidates(usage),
            "total": usage.input_tokens + usage.output_tokens,
            "cached": usage.cached_tokens,
            "thoughts": usage.thought_tokens,
            "tool": 0,
        },
        "cost_usd": _cost(usage),
    }


def _cost(usage: ModelUsage) -> float | None:
    return None if usage.unpriced else in_dollars(usage.cost)


def _candidates(usage: ModelUsage) -> int:
    """Return the output tokens without thoughts, which Gemini's candidates exclude."""
    return max(0, usage.output_tokens - usage.thought_tokens)


def _tool_counts(calls: Iterable[CallView]) -> Counts:
    counts: Counts = {"count": 0, "success": 0, "fail": 0, "durationMs": 0}
    decisions = {"accept": 0, "reject": 0, "modify": 0, "auto_accept": 0}
    for view in calls:
        counts["count"] += 1
        counts["success" if view.call.status is ToolCallStatus.SUCCEEDED else "fail"] += 1
        counts["durationMs"] += _milliseconds(view.duration)
        if decision := _decision(view):
            decisions[decision] += 1
    return {**counts, "decisions": decisions}


def _decision(view: CallView) -> str | None:
    """Return Gemini CLI's word for the decision of the user or of the policy; None if there was none."""
    if view.confirmation is not None:
        if view.confirmation.selected_option_id == "cancel":
            return "reject"
        return "accept" if view.confirmation.file_details is None else "modify"
    if view.was_asked:
        return "reject" if view.call.status is ToolCallStatus.CANCELLED else None
    return "auto_accept" if view.started_at is not None else None


def _lines(diffs: Iterable[FileDiff]) -> tuple[int, int]:
    added = removed = 0
    for diff in diffs:
        more, fewer = changed_lines(diff)
        added, removed = added + more, removed + fewer
    return added, removed


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
