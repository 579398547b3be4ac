"""Names of OpenTelemetry's conventions for generative AI, where they are not ours.

https://github.com/open-telemetry/semantic-conventions-genai has them.
"""

from collections.abc import Mapping

PROVIDERS = {"gemini": "gcp.gemini", "responses": "openai"}
"""Names of providers, where these are other ones."""
FINISHES = {"safety": "content_filter", "tool_calls": "tool_call"}
"""Reasons why a model stopped, where these are other ones."""
MODEL_METRICS = {
    "isthmus_model_seconds": ("gen_ai.client.operation.duration", "s"),
    "isthmus_model_request_tokens": ("gen_ai.client.token.usage", "{token}"),
}
"""Names and units of metrics of requests to models, by our names."""


def model_attributes(labels: Mapping[str, str]) -> dict[str, str]:
    """Return the attributes of a metric of requests to models, for its labels."""
    found = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": PROVIDERS.get(labels["provider"], labels["provider"]),
        "gen_ai.request.model": labels["model"],
    }
    if "direction" in labels:
        found["gen_ai.token.type"] = labels["direction"]
    if labels.get("result", "ok") != "ok":
        found["error.type"] = labels["result"]
    return found
