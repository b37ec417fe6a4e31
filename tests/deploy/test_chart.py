"""The chart: what it renders is valid, follows from the settings, and is what Kustomize gets."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from tests.support.command_line import ROOT, neardup
from tools.chart import CHART, KUSTOMIZE, PARTS, STRIMZI, rendered, schema, strimzi
from tools.go_programs import HELM, POD_MONITOR, GoProgram, GoProgramUnavailable, helm
from worker import __version__
from worker.admin.acls import grants
from worker.settings.loading import load
from worker.settings.model import Settings

Manifest = dict[str, Any]

TWO = ("--set", "settings.app=news", "--set", "settings.kafka.bootstrap=kafka:9092")
EVERYTHING = """
settings:
  app: news
  kafka:
    bootstrap: kafka:9092
    common:
      security.protocol: SASL_SSL
      sasl.password_file: /run/secrets/kafka/password
      socket.nagle.disable: true
  documents: {format: json, text_fields: [title, body], time_field: null}
  similarity: {threshold: 0.85}
  limits: {text_characters: 3000000}
  index: {shards: 4, window: 30d, snapshots: {url: "/snapshots", keep: 4, options: {anon: false}}}
  worker: {shutdown_seconds: 45.5, log_format: json}
image: {repository: registry.example.com/neardup, tag: "1", pullSecrets: [registry]}
files: {secrets: [kafka, seed], configMaps: [lines]}
topics: {job: create, partitions: 12, replication: 3, from: latest}
serve: {enabled: true, replicas: 2, tokenSecret: reading, plainText: true,
  hosts: [dedup.example.org]}
networkPolicy: {egress: [{ports: [{port: 9092}]}]}
podMonitor: {enabled: true, labels: {release: prometheus}}
storage: {className: fast}
podAnnotations: {example.com/team: search}
nodeSelector: {kubernetes.io/arch: amd64}
tolerations: [{key: dedicated, operator: Exists}]
"""


def needed(program: GoProgram) -> Path:
    try:
        return program.path()
    except GoProgramUnavailable as why:
        if os.environ.get("NEARDUP_REQUIRE_HELM") == "1":
            pytest.fail(str(why))
        pytest.skip(str(why))


@pytest.fixture(scope="module", autouse=True)
def helm_is_here() -> None:
    needed(HELM)


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> list[Manifest]:
    values = tmp_path_factory.mktemp("values") / "values.yaml"
    values.write_text(EVERYTHING)
    return template("--values", str(values))


def template(*arguments: str) -> list[Manifest]:
    done = helm("template", "neardup", str(CHART), *arguments)
    assert done.returncode == 0, done.stderr
    return [one for one in yaml.safe_load_all(done.stdout) if one]


def refused(*arguments: str) -> str:
    done = helm("template", "neardup", str(CHART), *TWO, *arguments)
    assert done.returncode != 0
    return done.stderr


def of_kind(manifests: list[Manifest], kind: str) -> Manifest:
    (found,) = (one for one in manifests if one["kind"] == kind)
    return found


def pods(manifests: list[Manifest]) -> list[Manifest]:
    return [
        one["spec"]["template"]["spec"]
        for one in manifests
        if one["kind"] in {"StatefulSet", "Deployment", "Job"}
    ]


def environment(manifests: list[Manifest], kind: str) -> dict[str, str]:
    """Return the settings that a container of this kind gets."""
    (container,) = of_kind(manifests, kind)["spec"]["template"]["spec"]["containers"]
    given: dict[str, str] = dict(of_kind(manifests, "ConfigMap")["data"])
    pod = {"metadata.name": "neardup-0", "metadata.namespace": "here"}
    for one in container["env"]:
        fixed = one.get("value") or pod[one["valueFrom"]["fieldRef"]["fieldPath"]]
        given[one["name"]] = fixed.replace("$(POD_NAMESPACE)", "here")
    return given


def settings_of(given: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Settings:
    for name in [name for name in os.environ if name.startswith("NEARDUP_")]:
        monkeypatch.delenv(name)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    return load()


def test_two_settings_have_no_default() -> None:
    done = helm("template", "neardup", str(CHART))
    assert done.returncode != 0
    wrong = re.findall(r"at '/settings/(\S+)'", done.stderr)
    assert sorted(wrong) == ["app", "kafka/bootstrap"]
    assert {one["kind"] for one in template(*TWO)} == {
        "ConfigMap",
        "Job",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "Service",
        "StatefulSet",
    }


@pytest.mark.parametrize("version", ["1.27", "1.34"])
def test_what_is_rendered_is_valid(everything: list[Manifest], version: str) -> None:
    for one in [*everything, *template(*TWO), *template(*TWO, "--set", "topics.job=none")]:
        if one["kind"] != "PodMonitor":
            kubernetes_validate.validate(one, version, strict=True)


def decoded(pod_monitor: Manifest) -> str:
    """Return why Prometheus's operator would refuse this, in its own types."""
    text = yaml.safe_dump(pod_monitor)
    done = subprocess.run(
        [needed(POD_MONITOR)], input=text, capture_output=True, text=True, check=False
    )
    assert (done.returncode == 0) == (not done.stderr)
    return done.stderr


def test_the_operator_of_prometheus_knows_all_fields(everything: list[Manifest]) -> None:
    one = of_kind(everything, "PodMonitor")
    assert decoded(one) == ""
    one["spec"]["podMetricsEndpoints"][0]["often"] = "5s"
    assert 'unknown field "often"' in decoded(one)


def test_a_misspelt_field_would_be_found() -> None:
    one = of_kind(template(*TWO), "StatefulSet")
    one["spec"]["replicaz"] = 3
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(one, "1.34", strict=True)


def test_the_schema_of_the_values_is_that_of_the_settings() -> None:
    written = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    assert schema(written) == written, "run: make chart"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("settings.index.shard=4", "/settings/index': additional properties 'shard' not allowed"),
        ("settings.index.shards=0", "/settings/index/shards': minimum: got 0, want 1"),
        ("settings.worker.instance=a", "additional properties 'instance' not allowed"),
        ("settings.similarity.seed=secret", "additional properties 'seed' not allowed"),
        (r"settings.kafka.common.sasl\.password=secret", "invalid propertyName 'sasl.password'"),
        ("settings.kafka.bootstrap=null", "/settings/kafka"),
        ("topics.job=maybe", "/topics/job"),
        ("files.secrets={a.b}", "/files/secrets/0"),
        ("replica=3", "additional properties 'replica' not allowed"),
    ],
)
def test_wrong_values_are_refused(given: str, said: str) -> None:
    assert said in refused("--set", given)


def test_a_worker_gets_the_settings(
    everything: list[Manifest], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_of(environment(everything, "StatefulSet"), monkeypatch)
    assert settings.app == "news"
    assert settings.documents.text_fields == ("title", "body")
    assert settings.kafka.common == {
        "security.protocol": "SASL_SSL",
        "sasl.password_file": "/run/secrets/kafka/password",
        "socket.nagle.disable": True,
    }
    assert settings.similarity.threshold == 0.85
    assert settings.limits.text_characters == 3_000_000
    assert (settings.index.shards, settings.index.snapshots.keep) == (4, 4)
    assert settings.index.snapshots.options == {"anon": False}
    assert settings.worker.instance == "neardup-0"


def test_a_server_answers_by_the_names_of_its_service(
    everything: list[Manifest], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_of(environment(everything, "Deployment"), monkeypatch)
    services = {one["metadata"]["name"] for one in everything if one["kind"] == "Service"}
    assert set(settings.serve.hosts) == {"dedup.example.org"} | {
        f"neardup-serve{domain}" for domain in ("", ".here", ".here.svc", ".here.svc.cluster.local")
    }
    assert "neardup-serve" in services


def mounted(manifests: list[Manifest], path: Path | None) -> tuple[str, str]:
    """Return the secret that has a file of the servers, and the file's name in it."""
    assert path is not None
    pod = of_kind(manifests, "Deployment")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    (name,) = (
        one["name"] for one in container["volumeMounts"] if one["mountPath"] == str(path.parent)
    )
    (secret,) = (one["secret"]["secretName"] for one in pod["volumes"] if one["name"] == name)
    return secret, path.name


def test_a_server_takes_a_token_and_tls(
    everything: list[Manifest], monkeypatch: pytest.MonkeyPatch
) -> None:
    serve = settings_of(environment(everything, "Deployment"), monkeypatch).serve
    assert mounted(everything, serve.token_file) == ("reading", "token")
    assert serve.tls_in_front
    assert serve.tls_cert_file is None

    given = ("--set", "serve.enabled=true,serve.tokenSecret=reading,serve.tlsSecret=certificate")
    with_tls = template(*TWO, *given)
    serve = settings_of(environment(with_tls, "Deployment"), monkeypatch).serve
    assert mounted(with_tls, serve.token_file) == ("reading", "token")
    assert not serve.tls_in_front
    assert mounted(with_tls, serve.tls_cert_file) == ("certificate", "tls.crt")
    assert mounted(with_tls, serve.tls_key_file) == ("certificate", "tls.key")

    assert "serve.tokenSecret: is missing" in refused(
        "--set", "serve.enabled=true,serve.plainText=true"
    )


def test_other_pods_reach_a_server_in_plain_text_only_if_that_is_asked_for() -> None:
    given = "serve.enabled=true,serve.tokenSecret=reading"
    complaint = "serve.tlsSecret: is missing.* plain text.* set serve.plainText"
    assert re.search(complaint, refused("--set", given))
    assert re.search(complaint, refused("--set", f"{given},serve.plainText=false"))
    assert pods(template(*TWO, "--set", f"{given},serve.plainText=true"))
    (server,) = (
        one
        for one in yaml.safe_load_all((KUSTOMIZE / "serve" / "serve.yaml").read_text())
        if one["kind"] == "Deployment"
    )
    (container,) = server["spec"]["template"]["spec"]["containers"]
    names = {one["name"] for one in container["env"]}
    assert "NEARDUP_SERVE__TLS_CERT_FILE" in names
    assert "NEARDUP_SERVE__TLS_IN_FRONT" not in names


def test_every_container_is_confined(everything: list[Manifest]) -> None:
    found = pods(everything)
    assert len(found) == 3
    for pod in found:
        assert pod["enableServiceLinks"] is False
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        (container,) = pod["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["limits"]["memory"]
        writable = {one["name"] for one in container["volumeMounts"] if not one.get("readOnly")}
        assert writable <= {"state", "tmp"}


def test_the_user_is_that_of_the_image(everything: list[Manifest]) -> None:
    (user,) = re.findall(r"^USER (\d+)$", (ROOT / "deploy/Dockerfile").read_text(), re.MULTILINE)
    for pod in pods(everything):
        context = pod["securityContext"]
        assert {context[name] for name in ("runAsUser", "runAsGroup", "fsGroup")} == {int(user)}


def test_commands_exist(everything: list[Manifest]) -> None:
    for pod in pods([*everything, *template(*TWO, "--set", "topics.job=init")]):
        (container,) = pod["containers"]
        done = neardup(*container["args"], "--help")
        assert done.returncode == 0, (done.stdout + done.stderr).decode()


def test_probes_ask_the_port_on_which_the_worker_listens(everything: list[Manifest]) -> None:
    text = (ROOT / "deploy" / "Dockerfile").read_text()
    (port,) = re.findall(r"NEARDUP_WORKER__HTTP_PORT=(\d+)", text)
    for pod in pods(everything)[:2]:
        (container,) = pod["containers"]
        ports = {one["name"]: one["containerPort"] for one in container.get("ports", ())}
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            if probe in container:
                asked = container[probe]["httpGet"]
                assert ports[asked["port"]] == int(port)
                assert container[probe]["timeoutSeconds"] >= 2


def test_a_worker_has_more_time_to_end_than_it_takes(everything: list[Manifest]) -> None:
    assert of_kind(template(*TWO), "StatefulSet")["spec"]["template"]["spec"][
        "terminationGracePeriodSeconds"
    ] == 10 + int(Settings.model_validate({}).worker.shutdown_seconds)
    given = of_kind(everything, "StatefulSet")["spec"]["template"]["spec"]
    assert given["terminationGracePeriodSeconds"] == 56


def test_selectors_find_their_pods_and_no_others(everything: list[Manifest]) -> None:
    labels = {
        one["kind"]: one["spec"]["template"]["metadata"]["labels"]
        for one in everything
        if one["kind"] in {"StatefulSet", "Deployment", "Job"}
    }

    def found(selector: dict[str, str]) -> set[str]:
        return {kind for kind, given in labels.items() if selector.items() <= given.items()}

    budget = of_kind(everything, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"]
    assert found(budget) == {"StatefulSet"}
    for one in everything:
        if one["kind"] in {"StatefulSet", "Deployment"}:
            assert found(one["spec"]["selector"]["matchLabels"]) == {one["kind"]}
        if one["kind"] == "Service":
            kind = "Deployment" if one["metadata"]["name"].endswith("-serve") else "StatefulSet"
            assert found(one["spec"]["selector"]) == {kind}
    policies = [one["spec"] for one in everything if one["kind"] == "NetworkPolicy"]
    chosen = [found(policy["podSelector"]["matchLabels"]) for policy in policies]
    assert sorted(chosen, key=str) == [{"Deployment"}, {"Job"}, {"StatefulSet"}]


def test_a_change_of_the_settings_restarts_the_pods() -> None:
    def digest(*more: str) -> str:
        pod = of_kind(template(*TWO, *more), "StatefulSet")["spec"]["template"]["metadata"]
        said: str = pod["annotations"]["checksum/settings"]
        return said

    assert digest() == digest("--set", "replicas=5")
    assert digest() != digest("--set", "settings.index.shards=5")


def test_the_version_is_that_of_the_project() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == __version__


@pytest.mark.parametrize("name", PARTS)
def test_what_kustomize_gets_is_what_the_chart_renders(name: str) -> None:
    written = (KUSTOMIZE / name).read_text(encoding="utf-8")
    assert written == rendered(name), "run: make chart"


def test_kustomize_mounts_a_secret_where_the_chart_does() -> None:
    """The patch applied by hand: kubectl isn't everywhere."""
    component = yaml.safe_load((KUSTOMIZE / "kafka-secret" / "kustomization.yaml").read_text())
    (patch,) = component["patches"]
    assert patch["target"]["kind"].split("|") == ["StatefulSet", "Deployment", "Job"]
    volume, mount = yaml.safe_load(patch["patch"])
    assert volume["path"] == "/spec/template/spec/volumes/-"
    assert mount["path"] == "/spec/template/spec/containers/0/volumeMounts/-"
    serve = ("--set", "serve.enabled=true,serve.tokenSecret=reading,serve.tlsSecret=certificate")
    before = pods(template(*TWO, *serve))
    after = pods(template(*TWO, *serve, "--set", "files.secrets={neardup-kafka}"))
    for pod in before:
        pod["volumes"].append(volume["value"])
        pod["containers"][0]["volumeMounts"].append(mount["value"])
    assert before == after


def test_the_component_of_servers_says_who_reaches_them() -> None:
    manifests = yaml.safe_load_all((KUSTOMIZE / "serve" / "serve.yaml").read_text())
    kinds = {one["kind"]: one for one in manifests}
    assert kinds.keys() == {"Deployment", "NetworkPolicy", "Service"}
    labels = kinds["Deployment"]["spec"]["template"]["metadata"]["labels"]
    selected = kinds["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"]
    assert selected.items() <= labels.items()


def test_kustomize_generates_the_settings_of_the_chart() -> None:
    base = yaml.safe_load((KUSTOMIZE / "base" / "kustomization.yaml").read_text())
    (generated,) = base["configMapGenerator"]
    literals = dict(one.split("=", 1) for one in generated["literals"])
    chart = template(
        *("--set", "settings.app=neardup", "--set", "settings.kafka.bootstrap=kafka:9092")
    )
    assert literals == of_kind(chart, "ConfigMap")["data"]
    assert generated["name"] == of_kind(chart, "ConfigMap")["metadata"]["name"]


def test_the_files_of_kustomize_are_there() -> None:
    for path in KUSTOMIZE.glob("*/kustomization.yaml"):
        made = yaml.safe_load(path.read_text())
        for other in [*made.get("resources", ()), *made.get("components", ())]:
            assert (path.parent / other).exists()


def test_strimzi_gets_the_topics_and_the_rights_of_the_code() -> None:
    assert STRIMZI.read_text(encoding="utf-8") == strimzi(), "run: make chart"
    user, *topics = yaml.safe_load_all(strimzi())
    topology = Settings.model_validate({}).topology(12)
    given = {
        (rule["resource"]["name"], operation)
        for rule in user["spec"]["authorization"]["acls"]
        for operation in rule["operations"]
    }
    needed = {
        (one.name, one.operation)
        for command in ("init", "run")
        for one in grants(topology, command)
        if not one.when and one.operation != "Describe"
    }
    assert needed <= given
    names = {one["metadata"]["name"] for one in topics}
    assert {topology.documents, topology.fingerprints, topology.matches(1)} <= names
