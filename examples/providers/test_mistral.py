import pytest

from isthmus.models.choose import choose, open_model

KEY = {"MISTRAL_API_KEY": "k"}


@pytest.mark.parametrize("name", ["mistral:codestral-2", "codestral-2", "Codestral-2"])
def test_the_models_of_mistral_are_known_by_their_names(name: str) -> None:
    choice = choose(name, None, KEY)
    assert (choice.provider, choice.name.lower()) == ("mistral", "codestral-2")


def test_its_key_alone_decides_for_its_default_model() -> None:
    assert choose(None, None, KEY).name == "mistral-large-latest"


@pytest.mark.anyio
async def test_it_is_opened_with_the_name_that_users_see() -> None:
    model = open_model(choose("mistral:codestral-2", None, KEY), KEY)
    assert (model.provider, model.name) == ("mistral", "codestral-2")
    await model.aclose()
