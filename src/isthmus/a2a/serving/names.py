"""Names of a server's options in messages: they differ between the command line and Python."""

from isthmus.errors import IsthmusError
from isthmus.record import record


class ServingError(IsthmusError):
    """Options of a server are invalid, contradict each other, or cannot be used here."""


@record
class OptionNames:
    """Names of options as users write them: by default the fields of Hosting."""

    audit_log: str = "audit_log"
    certificate: str = "certificate"
    host: str = "host"
    insecure_http: str = "insecure_http=True"
    otel: str = "telemetry.otel"
    public_url: str = "public_url"
    pushes_to: str = "pushes_to"
    sign_in: str = "sign_in"
    tokens_a_day: str = "user_caps.max_tokens_a_day"
    usd_a_day: str = "user_caps.max_usd_a_day"
    workspaces: str = "workspaces"
    unknown_tokens: str = (
        "the model tokens that the agent uses are not known: yield a ModelUsed of isthmus.internal_events for each"
        " request to a model, and set reports_tokens=True"
    )
    """Reason for which tokens of models cannot be limited, and what to do."""
    unknown_costs: str = (
        "the cost of the agent's models is not known: set the cost in each ModelUsed, in picodollars, and"
        " reports_costs=True"
    )
    """Reason for which costs cannot be limited, and what to do."""


IN_PYTHON = OptionNames()
"""Names of the options of an agent that is served by a Python program."""
