"""Messages of the protocol."""

from typing import Any


def asking(number: int | str, method: str, **params: Any) -> dict[str, Any]:
    """Return a request."""
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def calling(number: int | str, tool: str, /, **arguments: Any) -> dict[str, Any]:
    """Return a call of a tool."""
    return asking(number, "tools/call", name=tool, arguments=arguments)


def hello(version: str = "2025-11-25", number: int = 0) -> dict[str, Any]:
    """Return the first message of a client of a protocol with handshakes."""
    client = {"name": "test", "version": "1"}
    return asking(number, "initialize", protocolVersion=version, capabilities={}, clientInfo=client)


READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}
"""The message that ends a handshake."""
