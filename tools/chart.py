"""Writes what follows from others in `deploy/`: ``python -m tools.chart``.

The schema of the chart's values takes that of `settings` from the settings' own types. The base and
the components for Kustomize are what the chart renders.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tools.go_programs import helm
from worker.admin.acls import grants, kafka_user
from worker.admin.plan import DEFAULT_MAX_BYTES, plan
from worker.settings.model import Settings

DEPLOY = Path(__file__).parents[1] / "deploy"
CHART = DEPLOY / "helm" / "neardup"
KUSTOMIZE = DEPLOY / "kustomize"
STRIMZI = DEPLOY / "strimzi" / "neardup.yaml"

SET_BY_THE_CHART = {
    "similarity": ("seed",),
    "serve": ("hosts", "port", "token_file", "tls_cert_file", "tls_key_file", "tls_in_front"),
    "worker": ("instance", "state_dir", "http", "http_port"),
}
SECRETS = {"not": {"pattern": r"(password|secret|token|key\.pem|oauthbearer\.config)$"}}
"""Names of keys whose values belong into files: a ConfigMap is not for secrets."""
TABLES = ("common", "consumer", "producer", "options")
DROPPED = ("title", "default", "format", "writeOnly")

WITHOUT_NAMES = ("--set", "settings.app=neardup", "--set", "settings.kafka.bootstrap=kafka:9092")
PARTS = {
    "base/neardup.yaml": (),
    "serve/serve.yaml": (
        *("--set", "serve.enabled=true", "--set", "serve.tokenSecret=neardup-serve"),
        *("--set", "serve.tlsSecret=neardup-serve-tls"),
    ),
    "pod-monitor/pod-monitor.yaml": ("--set", "podMonitor.enabled=true"),
}
"""The files of `deploy/kustomize` that are rendered, each with helm's arguments. The base has all
that the chart has without any; the others have what theirs add."""


PARTITIONS = 12
STRIMZI_HEAD = """\
# A user and the topics of the application `neardup`, for Strimzi 0.49 or newer. Replace
# `my-cluster`. With these, the chart's `topics.job` is `init`.
#
# `python -m tools.chart` writes this file.
"""


def schema(written: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of the chart's values, with that of the settings as they are now."""
    whole = Settings.model_json_schema()
    settings = inlined(whole, whole.pop("$defs"))
    sections = settings["properties"]
    for section, names in SET_BY_THE_CHART.items():
        for name in names:
            del sections[section]["properties"][name]
    for section in (sections["kafka"], sections["index"]["properties"]["snapshots"]):
        for table in TABLES:
            if table in section["properties"]:
                section["properties"][table]["propertyNames"] = SECRETS
    sections["kafka"]["required"] = ["bootstrap"]
    sections["kafka"]["properties"]["bootstrap"]["minLength"] = 1
    settings["required"] = ["app", "kafka"]
    return {**written, "properties": {**written["properties"], "settings": settings}}


def inlined(node: Any, named: dict[str, Any]) -> Any:  # noqa: ANN401 -- JSON
    """Return a schema without references, titles and defaults, which Helm would show or ignore."""
    if isinstance(node, list):
        return [inlined(one, named) for one in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return inlined(named[node["$ref"].rpartition("/")[2]], named)
    return {
        name: {one: inlined(each, named) for one, each in value.items()}
        if name == "properties"
        else inlined(value, named)
        for name, value in node.items()
        if name not in DROPPED
    }


def rendered(name: str) -> str:
    """Return one of the files of `deploy/kustomize` that follow from the chart."""
    base, parts = _manifests(), _manifests(*PARTS[name])
    return "---\n" + "---\n".join(part for part in parts if not PARTS[name] or part not in base)


def _manifests(*arguments: str) -> list[str]:
    """Return the manifests of the chart, without the settings: Kustomize generates these."""
    done = helm("template", "neardup", str(CHART), *WITHOUT_NAMES, *arguments)
    if done.returncode:
        raise ValueError(done.stderr)
    _, *parts = done.stdout.split("---\n")
    return [part for part in parts if "\nkind: ConfigMap\n" not in part]


def strimzi() -> str:
    """Return what Strimzi's operator is to make: the topics, and a user for `init` and `run`."""
    settings = Settings.model_validate({})  # Whatever the environment says.
    topology = settings.topology(PARTITIONS)
    rights = [one for command in ("init", "run") for one in grants(topology, command)]
    manifests = [kafka_user(rights, settings.app, "my-cluster")]
    for one in plan(settings, topology, DEFAULT_MAX_BYTES):
        config = {**one.settings(), "min.insync.replicas": "2"}
        lines = [
            "apiVersion: kafka.strimzi.io/v1",
            "kind: KafkaTopic",
            "metadata:",
            f"  name: {one.name}",
            "  labels:",
            "    strimzi.io/cluster: my-cluster",
            "spec:",
            f"  partitions: {one.partitions}",
            "  replicas: 3",
            "  config:",
            *(f"    {name}: {json.dumps(value)}" for name, value in config.items()),
        ]
        manifests.append("\n".join(lines) + "\n")
    return STRIMZI_HEAD + "---\n".join(manifests)


def main() -> None:
    """Write the files."""
    path = CHART / "values.schema.json"
    new = schema(json.loads(path.read_text(encoding="utf-8")))
    path.write_text(json.dumps(new, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    STRIMZI.write_text(strimzi(), encoding="utf-8")
    for name in PARTS:
        (KUSTOMIZE / name).write_text(rendered(name), encoding="utf-8")


if __name__ == "__main__":
    main()
