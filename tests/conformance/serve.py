"""``npl-mcp-server`` with the suite's fixture added to its tools: takes the same command line."""

import sys
from typing import Any

from fastmcp import FastMCP
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fixture import TOOLS, mount

from npl_mcp.cli.commands import serving
from npl_mcp.http import app
from npl_mcp.server.server import AnswerCalls

plain = app.create_server


class AnswerOthers(Middleware):
    """Leaves calls of the fixture's tools to FastMCP."""

    def __init__(self, answers: Middleware) -> None:
        self._answers, self._names = answers, {tool.__name__ for tool in TOOLS}

    async def __call__(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Answer the other messages."""
        if context.method == "tools/call" and context.message.name in self._names:
            return await call_next(context)
        return await self._answers(context, call_next)


def with_fixture(*given: Any) -> FastMCP[Any]:
    """Build the server as the package does, with the fixture."""
    server = plain(*given)
    mount(server)
    server.middleware = [
        AnswerOthers(part) if isinstance(part, AnswerCalls) else part for part in server.middleware
    ]
    return server


if __name__ == "__main__":
    app.create_server = with_fixture
    sys.exit(serving.main())
