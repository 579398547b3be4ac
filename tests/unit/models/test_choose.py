import json
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from isthmus.errors import IsthmusError
from isthmus.models.choose import ModelChoice, choose, open_model
from isthmus.models.endpoint.endpoint import endpoint, is_loopback
from isthmus.models.endpoint.http import proxy_for
from isthmus.models.endpoint.local_servers import LocalServer, find_local_server, ollama_address
from isthmus.models.endpoint.providers import (
    ANTHROPIC,
    GEMINI,
    OPENAI,
    PROVIDERS,
    RESPONSES,
    Provider,
    secret_variables,
)
from isthmus.models.port.base import ModelError, ModelErrorKind
from support.openai_wire import OpenAIWire
from support.waiting import eventually
from support.wire_server import Answer, Hold, WireRequest, WireServer

KEYS = {"GEMINI_API_KEY": "g", "ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o"}


def no_server(environment: Mapping[str, str]) -> LocalServer | None:
    return None


def must_not_ask(environment: Mapping[str, str]) -> LocalServer | None:
    raise AssertionError("asked for a local server")


@pytest.mark.parametrize("spec", ["gemini:\n\x1b[31m", "gemini-\x00x", "claude-\u2028x"])
def test_a_name_with_control_characters_is_no_models_name(spec: str) -> None:
    with pytest.raises(IsthmusError, match="no model is called"):
        choose(spec, None, KEYS)


@pytest.mark.parametrize(
    ("spec", "provider", "name"),
    [
        ("gemini:gemini-x", "gemini", "gemini-x"),
        ("gemini", "gemini", GEMINI.default_model),
        ("models/gemini-x", "gemini", "models/gemini-x"),
        ("gemini-2.5-flash", "gemini", "gemini-2.5-flash"),
        ("anthropic:claude-x", "anthropic", "claude-x"),
        ("claude-opus-5", "anthropic", "claude-opus-5"),
        ("openai:ft:gpt-x:me", "openai", "ft:gpt-x:me"),
        ("gpt-5", "openai", "gpt-5"),
        ("o3-mini", "openai", "o3-mini"),
        (" GEMINI:x ", "gemini", "x"),
        ("demo", "demo", "demo"),
    ],
)
def test_a_named_model_is_taken_before_everything_else(spec: str, provider: str, name: str) -> None:
    choice = choose(spec, "claude-from-settings", KEYS, must_not_ask)
    assert (choice.provider, choice.name) == (provider, name)
    assert "-m" in choice.reason


def test_an_ollama_model_gets_the_address_of_ollama_and_no_key() -> None:
    choice = choose("ollama:qwen3:8b", None, {**KEYS, "OLLAMA_HOST": "0.0.0.0:9999"}, must_not_ask)
    assert choice == ModelChoice("openai", "qwen3:8b", choice.reason, "http://127.0.0.1:9999/v1")
    assert "o" not in endpoint(OPENAI, KEYS, choice.base_url).secrets


@pytest.mark.parametrize("spec", ["nope", "unknown:x", "scripted:", "ollama:", "ollama", "o", "http://x"])
def test_an_unknown_name_is_an_error_that_lists_the_forms(spec: str) -> None:
    forms = r"gemini:NAME, anthropic:NAME, openai:NAME, .*ollama:NAME, scripted:FILE, demo"
    with pytest.raises(IsthmusError, match=forms):
        choose(spec, None, KEYS, must_not_ask)


@pytest.mark.parametrize(("spec", "variable"), [("gemini:x", "GEMINI_API_KEY"), ("claude-x", "ANTHROPIC_AUTH_TOKEN")])
def test_a_named_model_without_its_key_is_an_error_that_names_the_variable(spec: str, variable: str) -> None:
    with pytest.raises(ModelError, match=variable) as caught:
        choose(spec, None, {}, must_not_ask)
    assert caught.value.kind is ModelErrorKind.CONFIGURATION


def test_the_settings_come_before_the_keys() -> None:
    choice = choose(None, "claude-opus-5", KEYS, must_not_ask)
    assert (choice.provider, choice.name, choice.reason) == ("anthropic", "claude-opus-5", "your settings name it")


@pytest.mark.parametrize("alias", ["auto", "flash", "pro", "auto-gemini-3"])
def test_gemini_clis_names_for_a_choice_of_models_mean_gemini(alias: str) -> None:
    assert choose(None, alias, KEYS, must_not_ask).name == GEMINI.default_model


def test_a_model_of_the_settings_without_its_key_is_passed_over_and_said() -> None:
    choice = choose(None, "gemini-2.5-pro", {"OPENAI_API_KEY": "o"}, must_not_ask)
    assert choice.provider == "openai"
    assert choice.reason == "OPENAI_API_KEY is set; your settings name gemini-2.5-pro, but GEMINI_API_KEY is not set"


@pytest.mark.parametrize(
    ("user", "project", "environment", "provider", "name"),
    [
        (None, "gemini-project", KEYS, "gemini", "gemini-project"),
        ("gemini-user", "gemini:gemini-project", KEYS, "gemini", "gemini-project"),
        ("gemini-user", "auto", KEYS, "gemini", GEMINI.default_model),
        ("claude-user", "gemini-project", KEYS, "anthropic", "claude-user"),
        ("claude-user", "ollama:project", KEYS, "anthropic", "claude-user"),
        ("claude-user", "nonsense", KEYS, "anthropic", "claude-user"),
        ("ollama:user", "gpt-project", KEYS, "openai", "user"),
        (None, "gemini-project", {"OPENAI_API_KEY": "o"}, "openai", OPENAI.default_model),
        (None, "gpt-project", {}, "demo", "demo"),
    ],
)
def test_a_projects_model_is_one_of_the_provider_in_use(
    user: str | None, project: str, environment: dict[str, str], provider: str, name: str
) -> None:
    choice = choose(None, user, environment, no_server, project_model=project)
    assert (choice.provider, choice.name) == (provider, name)
    assert "the project's settings name" in choice.reason
    assert choose("gpt-5", user, KEYS, must_not_ask, project_model=project).name == "gpt-5"


def test_keys_are_looked_for_in_a_fixed_order() -> None:
    found = [choose(None, None, KEYS, must_not_ask)]
    found.append(
        choose(None, None, {name: KEYS[name] for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")}, must_not_ask)
    )
    found.append(choose(None, None, {"OPENAI_API_KEY": "o", "GEMINI_API_KEY": " "}, must_not_ask))
    assert [choice.provider for choice in found] == ["gemini", "anthropic", "openai"]
    assert found[0].reason == "GEMINI_API_KEY is set"
    assert choose(None, None, {"ANTHROPIC_AUTH_TOKEN": "t"}, must_not_ask).reason == "ANTHROPIC_AUTH_TOKEN is set"


@pytest.mark.parametrize("provider", [pytest.param(provider, id=provider.id) for provider in PROVIDERS])
def test_an_address_on_this_machine_needs_no_key_and_the_providers_own_one_does(provider: Provider) -> None:
    variable = provider.base_url_variable
    assert choose(None, None, {variable: "http://localhost:1/v1"}, must_not_ask).provider == provider.id
    assert choose(None, None, {variable: f"{provider.base_url}/"}, no_server).provider == "demo"
    with pytest.raises(ModelError, match=provider.secrets.keys[0]):
        choose(provider.id, None, {}, must_not_ask)


def test_a_server_imitating_openai_needs_no_key_and_the_others_gateways_do() -> None:
    choice = choose(None, None, {"OPENAI_BASE_URL": "https://models.invalid/v1"}, must_not_ask)
    assert (choice.provider, choice.reason) == ("openai", "OPENAI_BASE_URL is set")
    for provider in (GEMINI, ANTHROPIC):
        assert choose(None, None, {provider.base_url_variable: "https://models.invalid"}, no_server).provider == "demo"


@pytest.mark.parametrize(
    ("environment", "variable"),
    [({"GEMINI_API_KEY": "two words"}, "GEMINI_API_KEY"), ({"OPENAI_BASE_URL": "my server"}, "OPENAI_BASE_URL")],
)
def test_what_the_environment_has_wrong_is_said_before_the_first_prompt(
    environment: dict[str, str], variable: str
) -> None:
    with pytest.raises(ModelError, match=variable):
        choose(None, None, environment, must_not_ask)


def test_a_server_of_openais_protocol_on_this_machine_is_asked_for_its_model() -> None:
    def is_asked() -> bool:  # on a machine that is busy with other tests a running server can look absent
        choice = choose(None, None, {"OPENAI_BASE_URL": wire.base_url}, must_not_ask)
        return (choice.provider, choice.name) == ("openai", "scripted")

    with OpenAIWire() as wire:
        eventually(is_asked)


def test_a_local_server_is_taken_when_no_key_is_set() -> None:
    server = LocalServer("Ollama", "http://127.0.0.1:11434/v1", "qwen3:8b")
    choice = choose(None, None, {}, lambda environment: server)
    assert (choice.provider, choice.name, choice.base_url) == ("openai", "qwen3:8b", server.base_url)
    assert choice.reason == "Ollama answers on this machine and no key is set"


def test_with_nothing_at_all_the_demonstration_is_chosen_and_says_why() -> None:
    choice = choose(None, None, {}, no_server)
    assert choice == ModelChoice("demo", "demo", "no key is set and no model server answers on this machine")
    assert open_model(choice, {}).name == "demo"


def test_a_script_is_read_when_it_is_chosen_so_that_a_mistake_is_said_at_once(tmp_path: Path) -> None:
    script = tmp_path / "talk.yaml"
    script.write_text("scenarios: [{prompt: ., replies: [{text: hi}]}]", encoding="utf-8")
    choice = choose(f"scripted:{script}", None, {}, must_not_ask)
    assert (choice.provider, choice.name, choice.script) == ("scripted", "talk", script)
    assert open_model(choice, {}).provider == "scripted"
    script.write_text("scenarios: 7", encoding="utf-8")
    with pytest.raises(IsthmusError, match=r"talk\.yaml:1:12"):
        choose(f"scripted:{script}", None, {}, must_not_ask)


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("", "http://127.0.0.1:11434"),
        ("0.0.0.0:11434", "http://127.0.0.1:11434"),
        (":8000", "http://127.0.0.1:8000"),
        ("box:1234", "http://box:1234"),
        ("http://box", "http://box:80"),
        ("https://box/ollama/", "https://box:443/ollama"),
        ("[::]:5", "http://[::1]:5"),
        ("box:port", "http://127.0.0.1:11434"),
    ],
)
def test_the_address_of_ollama_is_read_as_ollama_reads_it(host: str, address: str) -> None:
    assert ollama_address({"OLLAMA_HOST": host}) == address


def ollama(request: WireRequest) -> Answer:
    embedding = {"name": "nomic-embed-text:latest", "details": {"family": "nomic-bert"}}
    return Answer.json({"models": [embedding, {"name": "qwen3:8b", "details": {"family": "qwen3"}}]})


def test_a_running_ollama_is_found_with_a_model_that_can_chat() -> None:
    with WireServer(ollama) as server:
        found = eventually(lambda: find_local_server({"OLLAMA_HOST": server.base_url}, "http://127.0.0.1:1"))
        assert found == LocalServer("Ollama", f"{server.base_url}/v1", "qwen3:8b")
        assert {request.path for request in server.requests} == {"/api/tags"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "answer",
    [
        Answer.json({"models": []}),
        Answer.json(["what"], 404),
        Answer(200, {}, (b"<html>",)),
        Answer(200, {}, (b"{", Hold())),
    ],
)
def test_what_is_no_model_server_is_passed_over_in_time(answer: Answer) -> None:
    with WireServer(lambda request: answer) as server, WireServer(lambda request: answer) as other:
        begin = time.monotonic()
        assert find_local_server({"OLLAMA_HOST": server.base_url}, other.base_url) is None
        assert time.monotonic() - begin < 30  # with a silent server it would wait forever


def test_llama_cpp_is_found_when_ollama_is_not_there() -> None:
    with OpenAIWire() as wire:
        address = wire.base_url.removesuffix("/v1")
        found = eventually(lambda: find_local_server({"OLLAMA_HOST": "127.0.0.1:1"}, address))
    assert found == LocalServer("llama.cpp", f"{address}/v1", "scripted")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://localhost:1/v1", True),
        ("http://LOCALHOST.", True),
        ("http://127.9.9.9", True),
        ("http://[::1]:8", True),
        ("http://api.localhost", True),
        ("http://localhost.example.com", False),
        ("http://10.0.0.1", False),
        ("http://[::1", False),
        ("", False),
    ],
)
def test_only_this_machine_counts_as_this_machine(url: str, expected: bool) -> None:
    assert is_loopback(url) is expected


@pytest.mark.parametrize(
    "environment",
    [{"OPENAI_API_KEY": "sk-1\nsk-2"}, {"OPENAI_API_KEY": "sk-schlüssel"}, {"OPENAI_API_KEY": "sk 1"}],
)
def test_a_key_that_no_header_can_hold_is_refused_without_showing_it(environment: dict[str, str]) -> None:
    with pytest.raises(ModelError, match="OPENAI_API_KEY contains a character") as caught:
        endpoint(OPENAI, environment)
    assert "sk" not in str(caught.value)


@pytest.mark.parametrize("url", ["ftp://x", "localhost:80", "http://", "http://x:99999"])
def test_an_address_that_is_no_url_is_refused_by_name(url: str) -> None:
    with pytest.raises(ModelError, match="GOOGLE_GEMINI_BASE_URL: expected an http or https URL"):
        endpoint(GEMINI, {"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": "k"})


def test_a_key_is_not_part_of_the_text_of_its_endpoint() -> None:
    assert "hidden" not in repr(endpoint(ANTHROPIC, {"ANTHROPIC_API_KEY": "hidden"}))


def test_a_proxy_of_the_environment_is_used_for_others_and_never_for_this_machine() -> None:
    far = endpoint(GEMINI, {"GEMINI_API_KEY": "k"})
    near = endpoint(GEMINI, {"GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:1"})
    assert proxy_for(far, {"HTTPS_PROXY": "http://p:1"}) == "http://p:1"
    assert proxy_for(far, {"all_proxy": "http://p:1"}) == "http://p:1"
    assert proxy_for(far, {"HTTP_PROXY": "http://p:1"}) is None
    assert proxy_for(near, {"HTTP_PROXY": "http://p:1", "ALL_PROXY": "http://p:1"}) is None
    for no_proxy in ("*", "googleapis.com", ".googleapis.com", "a, *.googleapis.com:443"):
        assert proxy_for(far, {"HTTPS_PROXY": "http://p:1", "NO_PROXY": no_proxy}) is None
    assert proxy_for(far, {"HTTPS_PROXY": "http://p:1", "no_proxy": "apis.com,x"}) == "http://p:1"


def test_choosing_a_model_imports_nothing_heavy() -> None:
    program = (
        "import sys, json, isthmus.models.choose as c; c.choose('gemini:x', None, {'GEMINI_API_KEY': 'k'});"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    )
    loaded = json.loads(
        subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, timeout=60).stdout
    )
    assert not {"google", "anthropic", "openai", "yaml", "httpx2", "httpx", "pydantic", "asyncio"} & set(loaded)


def test_a_name_of_no_known_form_is_answered_with_all_forms() -> None:
    prefixed = ", ".join(f"{provider.id}:NAME" for provider in (*PROVIDERS, RESPONSES))
    beginnings = ", ".join(provider.shown_names for provider in PROVIDERS)
    forms = (
        f"no model is called 'nonsense' (you chose it with -m); expected {prefixed}, ollama:NAME, scripted:FILE, demo, "
        f"or a bare name that begins with {beginnings}"
    )
    with pytest.raises(IsthmusError, match=f"^{re.escape(forms)}$"):
        choose("nonsense", None, KEYS, must_not_ask)


def test_the_keys_of_every_provider_are_secrets() -> None:
    assert secret_variables() >= {
        "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "GEMINI_API_KEY", "GOOGLE_API_KEY", "OPENAI_API_KEY"
    }  # fmt: skip
    for provider in PROVIDERS:
        assert secret_variables() >= {*provider.secret_variables}
