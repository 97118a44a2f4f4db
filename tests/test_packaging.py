"""Published files are complete, have their form, and agree with each other. No network is needed."""

import ast
import json
import re
import subprocess
import sys
import zipfile
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import ValidationError
from packaging.requirements import Requirement
from packaging.version import Version

from npl_mcp.cli.commands.mcp import parser
from npl_mcp.config.settings import SETTINGS, Settings
from npl_mcp.tools.domains import listed_tools
from tests.conftest import calls
from tests.packaging import bundling, contents, pythons
from tests.packaging.forms import FORMS, check
from tests.packaging.project import PROJECT, ROOT, SDIST


def test_a_wheel_has_every_file_of_the_packages_and_the_corpus(tmp_path: Path) -> None:
    """It has templates, static files, data and prompts, and nothing else."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    packed = contents.in_wheel(wheel)
    assert packed == contents.expected_in_wheel()
    folders = ("npl_mcp/web/templates", "npl_mcp/web/static", "npl_mcp/corpus", "npl_index/data")
    assert all(any(name.startswith(f"{folder}/") for name in packed) for folder in folders)


def test_the_versions_of_python_that_are_tried_begin_with_the_first_one_allowed() -> None:
    """The versions have no gap."""
    minors = [int(version.removeprefix("3.")) for version in pythons.supported()]
    assert PROJECT["requires-python"] == f">=3.{minors[0]}"
    assert minors == list(range(minors[0], minors[-1] + 1))


def test_github_checks_the_oldest_and_the_newest_version_of_python() -> None:
    """It runs what a developer runs."""
    text = (ROOT / ".github" / "workflows" / "check.yml").read_text(encoding="utf-8")
    job = yaml.safe_load(text)["jobs"]["check"]
    assert job["strategy"]["matrix"]["python"] == [pythons.supported()[0], pythons.supported()[-1]]
    assert job["steps"][-1]["run"].startswith("make check ")


def test_the_pinned_packages_say_where_they_come_from_and_name_no_index() -> None:
    """The first line of the list stays when it is written again."""
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# Every package `make` installs")
    assert lines[0] in (ROOT / "Makefile").read_text(encoding="utf-8")
    assert not [line for line in lines if re.match(r"--|-[if]\b", line) or "://" in line]


def test_the_minimum_version_of_a_package_is_the_oldest_pinned_version() -> None:
    """No older version is tested. Some packages have one version for each Python."""
    pinned: dict[str, list[Version]] = {}
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    for name, version in re.findall(r"^([\w.-]+)==(\S+)", lines, re.MULTILINE):
        pinned.setdefault(name, []).append(Version(version))
    extras = PROJECT["optional-dependencies"]
    texts = (*PROJECT["dependencies"], *extras["postgres"])
    minimums: dict[str, list[Version]] = {}
    for requirement in map(Requirement, texts):
        minimum = [Version(part.version) for part in requirement.specifier if part.operator == ">="]
        minimums.setdefault(requirement.name.lower(), []).extend(minimum)
    assert {name: min(versions) for name, versions in minimums.items()} == {
        name: min(pinned[name]) for name in minimums
    }


def read(name: str) -> Any:
    return json.loads((ROOT / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", [name for name in FORMS if name.endswith(".json")])
def test_each_manifest_has_the_form_its_reader_asks_for(name: str) -> None:
    """Names that the form does not know are refused; the version is that of the package."""
    check(name, read(name))
    with pytest.raises(ValidationError, match="additional"):
        check(name, {**read(name), "odd": 1})
    text = (ROOT / name).read_text(encoding="utf-8")
    assert set(re.findall(r'"version": "([^"]*)"', text)) <= {PROJECT["version"]}


def test_the_registry_entry_is_about_this_package() -> None:
    """It has the project file's name and version, and arguments that the server takes."""
    entry = read("server.json")
    (package,) = entry["packages"]
    assert entry["name"].partition("/")[2] == package["identifier"] == PROJECT["name"]
    assert entry["version"] == package["version"] == PROJECT["version"]
    given = [
        text
        for argument in package["packageArguments"]
        for text in (argument["name"], argument.get("value", "x"))
    ]
    parser().parse_args(given)
    known = {setting.variable for setting in SETTINGS.values()}
    assert {variable["name"] for variable in package["environmentVariables"]} <= known


def test_a_bundle_starts_the_server_in_the_folder_that_was_chosen(tmp_path: Path) -> None:
    """It contains the files that its manifest names, and the server takes the arguments."""
    wheel = tmp_path / "any.whl"
    wheel.touch()
    with zipfile.ZipFile(bundling.write(wheel, tmp_path)) as archive:
        said = archive.read("pyproject.toml").decode()
        assert set(archive.namelist()) == {"manifest.json", "server.py", "pyproject.toml", wheel.name}
    assert f'path = "{wheel.name}"' in said
    manifest = bundling.manifest()
    assert manifest["name"] == PROJECT["name"]
    assert manifest["compatibility"]["runtimes"]["python"] == PROJECT["requires-python"]
    command = bundling.command(tmp_path, tmp_path)
    assert not [text for text in command if "$" in text]
    entry = command.index(manifest["server"]["entry_point"])
    assert parser().parse_args(command[entry + 1 :]).root == [tmp_path]


SKILL = ROOT / "plugin" / "skills" / "load-markdown" / "SKILL.md"
SKILL_WORDS = 300


def test_the_plugin_is_offered_and_starts_the_server_in_the_project() -> None:
    """The repository's marketplace names it, and the server takes its arguments."""
    plugin = read("plugin/.claude-plugin/plugin.json")
    (offered,) = read(".claude-plugin/marketplace.json")["plugins"]
    assert (offered["name"], offered["description"]) == (plugin["name"], plugin["description"])
    assert (ROOT / offered["source"] / ".claude-plugin" / "plugin.json").is_file()
    (server,) = read("plugin/.mcp.json")["mcpServers"].values()
    assert server["command"] in PROJECT["scripts"]
    parser().parse_args(server["args"])


def test_the_skill_has_its_form_and_is_short() -> None:
    _, head, body = SKILL.read_text(encoding="utf-8").split("---\n", 2)
    assert check("SKILL.md", yaml.safe_load(head))["name"] == SKILL.parent.name
    assert len(body.split()) < SKILL_WORDS


def test_the_calls_the_skill_teaches_are_answered(tmp_path: Path, settings: Settings) -> None:
    """Each example, as it is written, finds what it names; every tool it names is listed."""
    guide = tmp_path / "project" / "docs" / "guide.md"
    guide.parent.mkdir(parents=True)
    guide.write_text(
        "# Guide\n\n## Install\n\nNow.\n\n## Usage\n\n### Retries\n\nConfigured by `max_retries`.\n"
    )
    text = SKILL.read_text(encoding="utf-8")
    assert set(re.findall(r"\bnpl_\w+", text)) <= {spec.name for spec in listed_tools()}
    examples = ast.parse("".join(re.findall(r"^```python\n([^`]*)```$", text, re.MULTILINE))).body
    requests = [
        (
            example.value.func.id,
            {given.arg: ast.literal_eval(given.value) for given in example.value.keywords},
        )
        for example in examples
    ]
    answers = calls(replace(settings, roots=(tmp_path / "project",)), requests)
    assert len(answers) == 3
    assert all(answer["data"]["sections"] and "not_found" not in answer["data"] for answer in answers)


@pytest.mark.parametrize("name", ["bug", "idea"])
def test_an_issue_form_can_be_shown(name: str) -> None:
    """It asks each question once, and requires at least one answer."""
    text = (ROOT / ".github" / "ISSUE_TEMPLATE" / f"{name}.yml").read_text(encoding="utf-8")
    body = check("ISSUE_TEMPLATE", yaml.safe_load(text))["body"]
    assert len({asked["id"] for asked in body}) == len({asked["attributes"]["label"] for asked in body})
    assert any(asked.get("validations", {}).get("required") for asked in body)


def test_the_source_archive_is_told_of_every_file_that_is_published() -> None:
    """The archive alone suffices to test, build and publish."""
    always = ["pyproject.toml"]
    listed = [*always, *SDIST["include"]]
    left_out = [
        name
        for name in contents.SOURCES
        if not any(fnmatch(name.split("/")[0], pattern) for pattern in listed)
    ]
    assert left_out == []
    assert all((ROOT / name).exists() for name in contents.SOURCES)
