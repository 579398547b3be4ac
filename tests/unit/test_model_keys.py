"""The variables with model keys: who pays is never in doubt, and no project's server reads one."""

from isthmus.mcp_host.config.variables import MODEL_KEYS
from isthmus.runtime.model_keys import KEYS_OF_PROVIDERS, MODEL_KEY_VARIABLES
from isthmus.settings.env_files import PROJECT_VARIABLES


def test_each_variable_belongs_to_one_provider() -> None:
    assert len(set(MODEL_KEY_VARIABLES)) == len(MODEL_KEY_VARIABLES)


def test_each_provider_has_a_key_and_its_tokens_are_listed_too() -> None:
    for secrets in KEYS_OF_PROVIDERS.values():
        assert secrets.keys
        assert {*secrets.keys, *secrets.tokens} <= set(MODEL_KEY_VARIABLES)


def test_a_trusted_project_may_set_each_and_a_projects_server_is_given_none() -> None:
    assert set(MODEL_KEY_VARIABLES) <= set(PROJECT_VARIABLES)
    assert set(MODEL_KEY_VARIABLES) <= MODEL_KEYS
