"""The files for containers have their form, and use names that the program understands. No test runs them."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import ValidationError

from npl_mcp.config import settings
from npl_mcp.http.policy import OPEN, READY
from tests.packaging.forms import check
from tests.replicas import REPLICAS

ROOT = Path(__file__).resolve().parent.parent
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
COMPOSE = (ROOT / "compose.yaml").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    services: dict[str, Any] = yaml.safe_load(COMPOSE)
    return services


def test_replicas_differ_in_their_data_alone(compose: dict[str, Any]) -> None:
    """They run as the image's user, search one folder, and write only to their own volume."""
    replicas = {name: service for name, service in compose["services"].items() if name.startswith("npl")}
    assert len(replicas) == REPLICAS
    docs = "${DOCS:-./docs}:/docs:ro"
    assert all(service["volumes"] == [f"{name}:/data", docs] for name, service in replicas.items())
    assert all(service["environment"]["NPL_ROOTS"] == "/docs" for service in replicas.values())
    first, *others = ({**service, "volumes": []} for service in replicas.values())
    assert others == [first] * (REPLICAS - 1)
    assert first["read_only"] is True
    assert first["cap_drop"] == ["ALL"]
    assert "user" not in first
    (user,) = re.findall(r"useradd --uid (\d+) ", DOCKERFILE)
    # As a number, so that it can be seen from outside that this is not root.
    assert re.findall(r"^USER (.*)$", DOCKERFILE, re.MULTILINE) == [f"{user}:{user}"]


def test_the_files_have_the_form_that_is_asked_for(compose: dict[str, Any]) -> None:
    """Names that the specification does not know are refused, and the linter reports nothing."""
    said = {name: value for name, value in compose.items() if not name.startswith("x-")}
    check("compose.yaml", said)
    service = {**said["services"]["npl1"], "readonly": True}
    with pytest.raises(ValidationError, match="readonly"):
        check("compose.yaml", {**said, "services": {"npl1": service}})
    linter = shutil.which("hadolint", path=str(Path(sys.executable).parent))
    if linter is not None:  # it is made for Linux on x86-64 alone
        done = subprocess.run([linter, "-"], input=DOCKERFILE, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, "")


def test_all_that_is_named_is_there(compose: dict[str, Any]) -> None:
    services = compose["services"]
    for service in services.values():
        assert set(service.get("depends_on", ())) <= set(services)
        named = {volume.partition(":")[0] for volume in service["volumes"] if volume[0] not in "./$"}
        assert named <= set(compose["volumes"])
        assert {config["source"] for config in service.get("configs", ())} <= set(compose["configs"])
    assert re.findall(r"docker compose (?:build|run --rm) (\w+)", COMPOSE) == ["npl1", "npl1"]


def test_the_balancer_asks_each_replica_whether_it_is_ready(compose: dict[str, Any]) -> None:
    """It uses a host that the replica answers to, without a token; braces are in pairs."""
    content = compose["configs"]["caddyfile"]["content"]
    upstreams = re.search(r"reverse_proxy (.*) {", content)
    assert upstreams is not None
    assert upstreams[1].split() == [
        f"npl{number}:{settings.DEFAULT_PORT}" for number in range(1, REPLICAS + 1)
    ]
    assert f"health_uri {READY}\n" in content
    assert READY in OPEN
    assert f"Host localhost:{settings.DEFAULT_PORT}\n" in content
    assert content.count("{") == content.count("}")
    assert compose["services"]["balancer"]["ports"] == [f"{settings.DEFAULT_PORT}:{settings.DEFAULT_PORT}"]


def test_variables_and_commands_are_those_of_the_programs() -> None:
    known = {setting.variable for setting in settings.SETTINGS.values()}
    used = set(re.findall(r"\bNPL_\w+", COMPOSE + DOCKERFILE))
    assert used <= known
    assert 'CMD ["npl-mcp-server"]' in DOCKERFILE
    assert f"http://127.0.0.1:{settings.DEFAULT_PORT}{READY}" in DOCKERFILE


def test_the_image_has_what_the_package_is_made_of() -> None:
    """Every copied file exists and is not ignored."""
    let_in = re.findall(r"^!(.*)$", (ROOT / ".dockerignore").read_text(encoding="utf-8"), re.MULTILINE)
    lines = re.findall(r"^COPY (?!--from)(.*)$", DOCKERFILE, re.MULTILINE)
    copied = [name for line in lines for name in line.split()[:-1]]
    assert sorted(copied) == sorted(let_in)
    assert all((ROOT / name).exists() for name in copied)
