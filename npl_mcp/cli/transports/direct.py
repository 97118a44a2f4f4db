"""Calls tools in this process, and imports no more than the tool that is called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from npl_index.errors import NPLError
from npl_mcp.config.settings import Settings
from npl_mcp.tools import domains as tools
from npl_mcp.tools.responses import Reply, as_dict

if TYPE_CHECKING:
    from npl_mcp.core.app import App
    from npl_mcp.core.files import Files
    from npl_mcp.tools.spec import ToolSpec

OF_FILES = ("items", "survey")
"""Modules whose tools need the files and nothing else."""

DOMAINS = (*OF_FILES, "npl", "session", "artifact", "chat", "review", "worklog")
"""Modules of tools whose names begin with the module's; they are found without looking at any other."""

BESIDE = {"worklog": ("worklog_commands",)}
"""Modules with more tools of a domain, which only command lines call."""


class Direct:
    """Calls tools in this process.

    :param settings: by default those of the environment, read when a tool is called.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        self._settings = settings
        self._app: App | None = None

    def call(self, tool: str, **arguments: object) -> dict[str, Any]:
        """Call a tool; see :meth:`~npl_mcp.cli.transports.connecting.Way.call`."""
        given = {name: value for name, value in arguments.items() if value is not None}
        try:
            spec = spec_of(tool)
            body = as_dict(Reply(data=spec.function(self._holder(tool), **given)))
        except (NPLError, OSError) as error:
            return _failure(error, tool)
        assert isinstance(body, dict)
        return body

    def close(self) -> None:
        """Close the stores and caches a tool opened."""
        if self._app is not None:
            self._app.close()
            self._app = None

    def _holder(self, tool: str) -> Files | App:
        """Return the tool's first argument: for whole items the files alone, which take no time to set up."""
        if _domain(tool) in OF_FILES:
            from npl_mcp.core.files import Files

            return Files(self._settings or Settings.of_files())
        if self._app is None:
            import logging  # which the application does as well

            from npl_mcp.core.app import App

            # What the user should know stands in the answers; the log is for those who run servers.
            logging.getLogger("npl_mcp").addHandler(logging.NullHandler())
            self._app = App(self._settings or Settings.from_env())
        return self._app


def _domain(tool: str) -> str:
    return tool.partition("_")[0]


def spec_of(tool: str) -> ToolSpec:
    """Return the declaration of a tool; its module is imported, and no other if its name says which.

    :raises KeyError: there is no such tool.
    """
    domain = _domain(tool)
    for name in (domain, *BESIDE.get(domain, ())) if domain in DOMAINS else ():
        for spec in tools.tool_module(name).TOOLS:
            if spec.name == tool:
                return spec
    return {spec.name: spec for spec in (*tools.listed_tools(), *tools.unlisted_tools())}[tool]


def _failure(error: Exception, tool: str) -> dict[str, Any]:
    # Only failures need it, and it knows the errors of all stores.
    from npl_mcp.tools.errors import logger, translate

    # The message goes to the user once, and not to the log beside it.
    before, logger.disabled = logger.disabled, True
    try:
        body = as_dict(translate(error, tool))
    finally:
        logger.disabled = before
    assert isinstance(body, dict)
    return body
