"""The options of ``isthmus serve`` about users who are not in the server's own table."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from isthmus.cli.arguments.option_group import option_group
from isthmus.programs.setup.setup import BadInputError

if TYPE_CHECKING:
    from isthmus.a2a.serving.users import SignIn

_CLAIM = re.compile(r"[A-Za-z0-9_.:/-]{1,128}")
users_options = option_group(
    click.option(
        "--oidc-issuer",
        metavar="URL",
        help="Let the users of this OpenID Connect issuer in, too: their bearer tokens are its JWTs.",
    ),
    click.option("--oidc-audience", metavar="NAME", help="The audience (aud) that these JWTs must be for."),
    click.option(
        "--oidc-user-claim",
        metavar="NAME",
        default="sub",
        show_default=True,
        help="The claim that names the user: sub, email, preferred_username or another.",
    ),
    click.option("--oidc-tier-claim", metavar="NAME", help="The claim that names the user's tier, if there is one."),
    click.option(
        "--user-max-requests-a-minute",
        type=click.IntRange(min=1),
        metavar="N",
        help="Requests per user and minute. Default: no limit.",
    ),
    click.option(
        "--user-max-tokens-a-day",
        type=click.IntRange(min=1),
        metavar="N",
        help="Model tokens (input and output) per user and day (UTC). Default: no limit.",
    ),
    click.option(
        "--user-max-usd-a-day",
        type=click.FloatRange(min=0, min_open=True),
        metavar="AMOUNT",
        help="US dollars that models may cost per user and day (UTC), such as 2.50. Default: no limit.",
    ),
    click.option(
        "--audit-log",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Append a line of JSON for each request: who did what, and how it ended.",
    ),
)


def sign_in(options: dict[str, Any]) -> "SignIn | None":
    """Return the issuer that the options name, if they do.

    Raises:
        BadInputError: an option is missing or invalid.
    """
    from isthmus.a2a.serving.users import SignIn

    issuer, audience, user, tier = (
        options[f"oidc_{name}"] for name in ("issuer", "audience", "user_claim", "tier_claim")
    )
    if issuer is None:
        if audience is not None or tier is not None or user != "sub":
            raise BadInputError("--oidc-audience, --oidc-user-claim and --oidc-tier-claim belong to --oidc-issuer URL")
        return None
    if not audience:
        raise BadInputError(
            "--oidc-issuer needs --oidc-audience NAME: without it a JWT for any other program would be accepted"
        )
    for name, value in (("--oidc-user-claim", user), ("--oidc-tier-claim", tier)):
        if value is not None and _CLAIM.fullmatch(value) is None:
            raise BadInputError(f"{name} {value[:200]!r}: expected the name of a claim, such as email")
    return SignIn(issuer, audience, user, tier)
