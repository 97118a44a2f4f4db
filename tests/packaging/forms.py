"""The form of the files that say how to install and to connect the server, as far as they use it.

Each class is what the publisher of the format asks for; a name it does not know is an error.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Version = Annotated[str, StringConstraints(pattern=r"^\d+\.\d+\.\d+$")]
KebabCase = Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]+$")]
Text = Annotated[str, StringConstraints(min_length=1)]
Duration = Annotated[str, StringConstraints(pattern=r"^\d+(ms|s|m|h)$")]
Size = Annotated[str, StringConstraints(pattern=r"^\d+[bkmg]b?$")]


class Form(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Person(Form):
    name: Text


class Input(Form):
    """A value that the client asks for, or a fixed one."""

    name: Text
    description: str | None = None
    format: Literal["string", "number", "boolean", "filepath"] = "string"
    value: str | None = None
    default: str | None = None
    isRequired: bool = False  # noqa: N815


class NamedArgument(Input):
    type: Literal["named"]
    isRepeated: bool = False  # noqa: N815


class Transport(Form):
    type: Literal["stdio"]


class Package(Form):
    registryType: Literal["pypi"]  # noqa: N815
    identifier: Text
    version: Version
    runtimeHint: Literal["uvx"]  # noqa: N815
    transport: Transport
    packageArguments: list[NamedArgument]  # noqa: N815
    environmentVariables: list[Input]  # noqa: N815


class RegistryEntry(Form):
    """``server.json`` of the MCP registry, 2025-12-11."""

    schema_: Literal["https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"] = Field(
        alias="$schema"
    )
    name: Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$", max_length=200)]
    title: Annotated[str, StringConstraints(min_length=1, max_length=100)]
    description: Annotated[str, StringConstraints(min_length=1, max_length=100)]
    version: Version
    packages: list[Package]


class Command(Form):
    command: Text
    args: list[str]


class BundledServer(Form):
    type: Literal["uv"]
    entry_point: Text
    mcp_config: Command


class Setting(Form):
    type: Literal["string", "number", "boolean", "directory", "file"]
    title: Text
    description: Text
    required: bool = False


class Runtimes(Form):
    python: Text


class Compatibility(Form):
    platforms: list[Literal["darwin", "win32", "linux"]]
    runtimes: Runtimes


class BundleManifest(Form):
    """``manifest.json`` of an MCP bundle; from 0.4 on the host brings Python and packages."""

    manifest_version: Literal["0.4"]
    name: KebabCase
    display_name: Text
    version: Version
    description: Text
    author: Person
    license: Text
    keywords: list[Text]
    server: BundledServer
    tools_generated: bool
    compatibility: Compatibility
    user_config: dict[str, Setting]


class Plugin(Form):
    """``.claude-plugin/plugin.json`` of Claude Code."""

    name: KebabCase
    version: Version
    description: Text
    author: Person
    license: Text
    keywords: list[Text]


class PluginServer(Command):
    alwaysLoad: bool  # noqa: N815


class PluginServers(Form):
    """``.mcp.json`` of a plugin."""

    mcpServers: dict[str, PluginServer]  # noqa: N815


class ListedPlugin(Form):
    name: KebabCase
    source: Annotated[str, StringConstraints(pattern=r"^\./")]
    description: Text


class Marketplace(Form):
    """``.claude-plugin/marketplace.json`` of a repository that offers plugins."""

    name: KebabCase
    description: Text
    owner: Person
    plugins: list[ListedPlugin]


class Skill(Form):
    """The front matter of a ``SKILL.md``; until it is needed, only this is read."""

    name: Annotated[KebabCase, StringConstraints(max_length=64)]
    description: Annotated[str, StringConstraints(min_length=1, max_length=1024)]


class Question(Form):
    label: Text
    description: Text | None = None
    render: Text | None = None


class Validations(Form):
    required: bool


class Asked(Form):
    type: Literal["input", "textarea"]
    id: KebabCase
    attributes: Question
    validations: Validations = Validations(required=False)


class IssueForm(Form):
    """A form of ``.github/ISSUE_TEMPLATE``."""

    name: Text
    description: Text
    labels: list[Text]
    body: list[Asked]


class Condition(Form):
    condition: Literal["service_started", "service_healthy", "service_completed_successfully"]


class HealthCheck(Form):
    test: list[str]
    interval: Duration
    retries: int


class GivenConfig(Form):
    source: Text
    target: Text


class Service(Form):
    image: Text
    build: Text | None = None
    command: list[str] = []
    environment: dict[str, str] = {}
    depends_on: list[str] | dict[str, Condition] = []
    profiles: list[str] = []
    restart: Literal["no", "always", "on-failure", "unless-stopped"] = "no"
    init: bool = False
    read_only: bool = False
    tmpfs: list[str] = []
    cap_drop: list[str] = []
    security_opt: list[str] = []
    mem_limit: Size | None = None
    shm_size: Size | None = None
    stop_grace_period: Duration | None = None
    ports: list[Annotated[str, StringConstraints(pattern=r"^\d+:\d+$")]] = []
    volumes: list[str] = []
    configs: list[GivenConfig] = []
    healthcheck: HealthCheck | None = None


class InlineConfig(Form):
    content: Text


class Compose(Form):
    """``compose.yaml`` without its ``x-`` names, after ``schema/compose-spec.json`` of the specification."""

    name: KebabCase
    services: dict[KebabCase, Service]
    configs: dict[KebabCase, InlineConfig]
    volumes: dict[KebabCase, None]


FORMS: dict[str, type[Form]] = {
    "server.json": RegistryEntry,
    "bundle/manifest.json": BundleManifest,
    "plugin/.claude-plugin/plugin.json": Plugin,
    "plugin/.mcp.json": PluginServers,
    ".claude-plugin/marketplace.json": Marketplace,
}
