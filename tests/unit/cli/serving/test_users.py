"""Options of ``isthmus serve`` about the users of an issuer and the audit log: what is refused at the start."""

from pathlib import Path
from typing import Any

import pytest

from isthmus.a2a.serving.names import ServingError
from isthmus.a2a.serving.users import SignIn, served_users
from isthmus.cli.serving.users import sign_in
from isthmus.programs.serve.serve_settings import NAMES
from isthmus.programs.setup.setup import BadInputError

ISSUER = "https://login.example.org"


def options(**given: Any) -> dict[str, Any]:
    usual = {"oidc_issuer": None, "oidc_audience": None, "oidc_user_claim": "sub", "oidc_tier_claim": None}
    return {**usual, **{f"oidc_{name}": value for name, value in given.items()}}


def test_an_issuer_is_named_with_an_audience_and_claims() -> None:
    assert sign_in(options()) is None
    given = options(issuer=ISSUER, audience="isthmus", user_claim="email", tier_claim="https://example.org/plan")
    assert sign_in(given) == SignIn(ISSUER, "isthmus", "email", "https://example.org/plan")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"issuer": ISSUER}, "needs --oidc-audience"),
        ({"issuer": ISSUER, "audience": ""}, "needs --oidc-audience"),
        ({"audience": "isthmus"}, "belong to --oidc-issuer"),
        ({"user_claim": "email"}, "belong to --oidc-issuer"),
        ({"tier_claim": "plan"}, "belong to --oidc-issuer"),
        ({"issuer": ISSUER, "audience": "a", "user_claim": "a=b"}, "expected the name of a claim"),
        ({"issuer": ISSUER, "audience": "a", "tier_claim": 'x"'}, "expected the name of a claim"),
    ],
)
def test_options_that_do_not_belong_together_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        sign_in(options(**given))


@pytest.mark.anyio
async def test_users_of_an_issuer_need_folders_and_an_issuer_https(tmp_path: Path) -> None:
    for issuer, roots, message in ((ISSUER, (), "--workspace DIR"), ("http://example.org", (tmp_path,), "https")):
        with pytest.raises(ServingError, match=f"^--oidc-issuer .*{message}"):
            async with served_users(SignIn(issuer, "isthmus"), None, roots, NAMES):
                pass
    with pytest.raises(ServingError, match=f"^--audit-log {tmp_path}"):
        async with served_users(None, tmp_path, (), NAMES):
            pass
