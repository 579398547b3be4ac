"""The files in deploy/: they fit the schemas of those who read them, our own options, and each other.

Nothing of them is run here: deploy/README.md says what that leaves unchecked.
"""

import configparser
import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

import click
import jsonschema
import pytest
import yaml

from isthmus.cli.main import command as main

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
MANIFESTS = sorted(path for path in (DEPLOY / "kubernetes").iterdir() if ".yaml" in path.suffixes)
UNITS = sorted(path for path in (DEPLOY / "systemd").iterdir() if path.suffix in (".service", ".target"))
METRICS = {
    "isthmus_journal_bytes": ("",),
    "isthmus_model_cached_tokens_total": ("",),
    "isthmus_model_cost_usd_total": ("",),
    "isthmus_model_requests_without_price_total": ("",),
    "isthmus_model_tokens_total": ("",),
    "isthmus_push_lag_seconds": ("_bucket",),
    "isthmus_queue_length": ("",),
    "isthmus_queue_seconds": ("_bucket",),
    "isthmus_replicas": ("",),
    "isthmus_segment_seconds": ("_bucket",),
    "isthmus_tasks": ("",),
}
"""Metrics of a server, with the suffixes of their series that queries may use."""
VALUES = {"%i": "8081", "ISTHMUS_PUBLIC_URL": "https://a.example/", "ISTHMUS_DOMAIN": "a.example"}
"""Values for what systemd, Compose and Kubernetes put into command lines."""


def read(name: str) -> str:
    return (DEPLOY / name).read_text("utf-8")


def documents(path: Path) -> list[dict[str, Any]]:
    return [each for each in yaml.safe_load_all(path.read_text("utf-8")) if each is not None]


def resource(kind: str) -> dict[str, Any]:
    """Return the manifest of a kind, without those of other kinds."""
    return next(each for path in MANIFESTS for each in documents(path) if each["kind"] == kind)


def test_the_compose_file_fits_the_schema_of_the_specification() -> None:
    schema = files("check_jsonschema").joinpath("builtin_schemas/vendor/compose-spec.json").read_text("utf-8")
    validator: Any = jsonschema.Draft202012Validator(json.loads(schema))
    validator.validate(yaml.safe_load(read("compose.yaml")))


def test_the_services_of_the_compose_file_use_what_it_declares() -> None:
    compose = yaml.safe_load(read("compose.yaml"))
    volumes, secrets, networks = set[str](), set[str](), set[str]()
    for service in compose["services"].values():
        sources = {item.partition(":")[0] for item in service.get("volumes", ())}
        volumes |= {source for source in sources if source[0] not in "./$"}
        secrets |= set(service.get("secrets", ()))
        networks |= set(service["networks"])
    assert volumes == set(compose["volumes"])
    assert secrets == set(compose["secrets"])
    assert networks == set(compose["networks"])
    servers = compose["services"]["proxy"]["environment"]["ISTHMUS_SERVERS"].split()
    assert [each.partition(":")[0] for each in servers] == [name for name in compose["services"] if "isthmus" in name]


@pytest.mark.parametrize("version", ["1.34", "1.37"])
@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_a_manifest_fits_the_schema_of_kubernetes(path: Path, version: str) -> None:
    validate = import_module("kubernetes_validate").validate
    for document in documents(path):
        assert validate(document, version, strict=True) == version


def test_the_manifests_fit_together() -> None:
    pods = resource("StatefulSet")["spec"]
    pod, labels = pods["template"]["spec"], pods["template"]["metadata"]["labels"]
    [container], budget = pod["containers"], resource("PodDisruptionBudget")
    assert pods["selector"]["matchLabels"] == budget["spec"]["selector"]["matchLabels"] == labels
    services = [each for each in documents(DEPLOY / "kubernetes" / "services.yaml") if each["kind"] == "Service"]
    assert all(each["spec"]["selector"] == labels for each in services)
    assert pods["serviceName"] in [each["metadata"]["name"] for each in services]
    mounted = {each["name"] for each in container["volumeMounts"]}
    declared = {each["name"] for each in (*pod["volumes"], *({"name": "data"},))}
    assert mounted <= declared
    names = {kind: resource(kind)["metadata"]["name"] for kind in ("ConfigMap", "Secret", "PersistentVolumeClaim")}
    volumes = {each["name"]: each for each in pod["volumes"]}
    assert volumes["secrets"]["secret"]["secretName"] == names["Secret"]
    assert volumes["workspace"]["persistentVolumeClaim"]["claimName"] == names["PersistentVolumeClaim"]
    assert container["envFrom"] == [{"configMapRef": {"name": names["ConfigMap"]}}]
    for name in resource("Secret")["stringData"]:
        assert f"/secrets/{name}" in pod["initContainers"][0]["args"][0]
    scaled = resource("HorizontalPodAutoscaler")["spec"]["scaleTargetRef"]
    assert (scaled["kind"], scaled["name"]) == ("StatefulSet", resource("StatefulSet")["metadata"]["name"])


def test_prometheus_has_a_token_that_opens_the_metrics_alone() -> None:
    servers = [(where, words) for where, words in command_lines() if words[1] == "serve" and "--help" not in words]
    assert len(servers) == 4
    for where, words in servers:
        options = [word for part in words for word in part.split("=", 1)]
        metrics, owner = (Path(options[options.index(name) + 1]) for name in ("--metrics-token-file", "--token-file"))
        assert metrics.name == "metrics-token", where
        assert metrics.parent == owner.parent, where
    compose = yaml.safe_load(read("compose.yaml"))
    assert compose["secrets"]["metrics-token"] == {"file": "./secrets/metrics-token"}
    assert "metrics-token" in compose["services"]["isthmus-1"]["secrets"]
    assert "metrics-token" in resource("Secret")["stringData"]
    assert read("prepare.sh").count("secrets/metrics-token") == 3  # it is looked for, made and given to the servers
    assert "install -o isthmus -m 0600 token metrics-token pgpass /etc/isthmus/" in read("README.md")
    for job in yaml.safe_load(read("prometheus/prometheus.yaml"))["scrape_configs"]:
        assert job["authorization"] == {"credentials_file": "/etc/prometheus/isthmus-metrics-token"}, job["job_name"]


def test_a_server_has_more_time_to_end_than_its_tasks_have() -> None:
    found = {
        "compose.yaml": r"stop_grace_period: (\d+)s",
        "systemd/isthmus@.service": r"(?m)^TimeoutStopSec=(\d+)$",
        "kubernetes/statefulset.yaml": r"terminationGracePeriodSeconds: (\d+)",
    }
    for name, pattern in found.items():
        [seconds] = re.findall(pattern, read(name))
        [drain] = re.findall(r"--drain-seconds[ =](\d+)", read(name))
        assert int(seconds) >= int(drain) + 30, name


def test_the_units_are_verified(tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    for path in UNITS:  # what the unit starts is installed on no machine that runs this test
        text = path.read_text("utf-8")
        (tmp_path / path.name).write_text(re.sub(r"(?m)^ExecStart=\S+", "ExecStart=/bin/true", text), "utf-8")
        _parsed(path)
    if program is None:
        return
    units = [str(tmp_path / path.name.replace("@.", "@8081.")) for path in UNITS]
    done = subprocess.run(
        [program, "verify", "--man=no", *units],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        timeout=30,
    )
    ours = [line for line in (done.stdout + done.stderr).splitlines() if "isthmus" in line]
    assert not ours


def _parsed(path: Path) -> configparser.RawConfigParser:
    """Return a unit; fail if its text is not one."""
    parser = configparser.RawConfigParser(strict=False, comment_prefixes=("#",), delimiters=("=",))
    parser.optionxform = str  # type: ignore[method-assign] - keys keep their case
    parser.read_string(path.read_text("utf-8"))
    assert set(parser.sections()) <= {"Unit", "Service", "Install"}
    assert all(re.fullmatch(r"[A-Z][A-Za-z]+", key) for section in parser.sections() for key in parser[section])
    return parser


def command_lines() -> Iterator[tuple[str, list[str]]]:
    """Yield each command line of our program in deploy/, with the file that has it."""
    compose = yaml.safe_load(read("compose.yaml"))
    for name in ("isthmus-1", "isthmus-2"):
        yield f"compose.yaml {name}", compose["services"][name]["command"]
    [container] = resource("StatefulSet")["spec"]["template"]["spec"]["containers"]
    yield "statefulset.yaml", container["args"]
    [command] = re.findall(r"(?m)^CMD (.*)$", read("Dockerfile"))
    yield "Dockerfile", json.loads(command)
    for path in UNITS:
        for line in re.findall(r"(?m)^ExecStart=(.*)$", path.read_text("utf-8")):
            words = shlex.split(line)
            yield path.name, [Path(words[0]).name, *words[1:]]
    for line in re.findall(r"(?m)^(isthmus .*?)(?:#.*)?$", read("README.md")):
        yield f"README.md {line[:40]}", shlex.split(line)


@pytest.mark.parametrize(
    ("where", "words"), list(command_lines()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_command_line_has_options_that_exist(where: str, words: list[str]) -> None:
    assert words[0] == "isthmus", where
    arguments = [
        re.sub(r"\$[({](\w+)(?::\?[^}]*)?[)}]|%i", lambda one: VALUES[one[1] or "%i"], word) for word in words[1:]
    ]
    parse(main, "isthmus", [each for each in arguments if each != "--help"])


def parse(command: click.Command, name: str, arguments: list[str], parent: click.Context | None = None) -> None:
    """Parse a command line without running it. Raises `click.UsageError` for what the command does not know."""
    with command.make_context(name, list(arguments), parent=parent) as context:
        rest = [*context._protected_args, *context.args]  # pyright: ignore[reportPrivateUsage]
        if isinstance(command, click.Group) and rest:
            found, subcommand, others = command.resolve_command(context, rest)
            assert subcommand is not None
            parse(subcommand, cast("str", found), others, context)


def test_a_renamed_option_is_noticed() -> None:
    with pytest.raises(click.UsageError):
        parse(main, "isthmus", ["serve", "--drain-minutes", "1"])


def test_the_queries_name_metrics_that_exist() -> None:
    dashboard = json.loads(read("grafana/dashboard.json"))
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    used = {name for query in queries for name in re.findall(r"\bisthmus_\w+", query)}
    known = {name + suffix for name, suffixes in METRICS.items() for suffix in suffixes}
    assert used == known
    written = "\n".join(path.read_text("utf-8") for path in (DEPLOY.parent / "src/isthmus/observability").glob("*.py"))
    assert [name for name in METRICS if f'"{name}"' not in written] == []
    rules = yaml.safe_load(read("prometheus/adapter-rules.yaml"))["rules"]["external"]
    for rule in rules:
        assert {rule["seriesQuery"], *re.findall(r"\bisthmus_\w+", rule["metricsQuery"])} <= known
    scaled = [each["external"]["metric"]["name"] for each in resource("HorizontalPodAutoscaler")["spec"]["metrics"]]
    assert scaled == [rule["name"]["as"] for rule in rules]


def test_the_panels_of_the_dashboard_do_not_overlap() -> None:
    cells = [
        (x, y)
        for panel in json.loads(read("grafana/dashboard.json"))["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells))


def test_prepare_refuses_a_workspace_that_is_not_there(tmp_path: Path) -> None:
    copy = shutil.copy(DEPLOY / "prepare.sh", tmp_path)
    for workspace in ("relative", str(tmp_path / "missing")):
        done = subprocess.run(
            ["sh", copy, "a.example", workspace],
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
            timeout=10,
        )
        assert done.returncode == 2
        assert "the absolute path of a folder" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["prepare.sh"]
