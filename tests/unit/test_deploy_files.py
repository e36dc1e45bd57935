"""The files of `deploy/` agree with each other and with the settings, and give containers no more than they need."""

import re
from pathlib import Path
from typing import Any

import yaml

from footplate.config import Settings

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
NOT_SETTINGS = {"FOOTPLATE_NAME", "FOOTPLATE_IMAGE", "FOOTPLATE_HTTPS_PORT", "FOOTPLATE_WORKER_MEMORY"} | {
    "FOOTPLATE_PROMETHEUS_PORT"
}
"""Variables that only compose reads."""


def _services() -> dict[str, dict[str, Any]]:
    services: dict[str, dict[str, Any]] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    return services


def test_no_container_gets_a_privilege() -> None:
    for name, service in _services().items():
        assert service["cap_drop"] == ["ALL"], name
        assert "no-new-privileges:true" in service["security_opt"], name
        assert not service.keys() & {"privileged", "cap_add", "devices", "pid", "network_mode"}, name


def test_only_workers_run_without_a_filter_of_system_calls() -> None:
    unconfined = {name for name, service in _services().items() if "seccomp:unconfined" in service["security_opt"]}
    assert unconfined == {"worker-1", "worker-2"}


def test_only_the_proxy_has_a_port_and_only_services_without_one_reach_temporal() -> None:
    services = _services()
    assert {name for name, service in services.items() if "ports" in service} == {"proxy", "prometheus"}
    assert services["prometheus"]["ports"][0].startswith("127.0.0.1:")
    assert services["proxy"]["networks"] == ["front"]
    assert services["temporal"]["networks"] == ["services"]


def test_every_setting_of_the_files_exists() -> None:
    known = {f"FOOTPLATE_{name.upper()}" for name in Settings.model_fields}
    for file in ("compose.yaml", "create-secrets.sh", "kubernetes/footplate.yaml", "image/Dockerfile"):
        named = set(re.findall(r"FOOTPLATE_[A-Z_]+", (DEPLOY / file).read_text()))
        assert named - known - NOT_SETTINGS == set(), file


def test_prometheus_scrapes_every_process() -> None:
    processes = {name for name in _services() if name.startswith(("api-", "worker-"))}
    scraped = yaml.safe_load((DEPLOY / "services/prometheus.yaml").read_text())["scrape_configs"]
    targets = [target for job in scraped for group in job["static_configs"] for target in group["targets"]]
    assert sorted(targets) == sorted(f"{name}:9100" for name in processes)
    alerts = (DEPLOY / "prometheus/alerts.yaml").read_text()
    assert all(job["job_name"] in alerts for job in scraped)


def test_all_images_have_one_base_and_user() -> None:
    bases = {
        line
        for file in DEPLOY.glob("*/Dockerfile")
        for line in file.read_text().splitlines()
        if line.startswith("ARG BASE=")
    }
    assert len(bases) == 1
    for manifest in yaml.safe_load_all((DEPLOY / "kubernetes/footplate.yaml").read_text()):
        if manifest["kind"] == "Deployment":
            assert manifest["spec"]["template"]["spec"]["securityContext"]["runAsUser"] == 10001
    assert "USER 10001:10001" in (DEPLOY / "image/Dockerfile").read_text()
