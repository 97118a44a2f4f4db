"""HTTP to another machine, or with TLS: httpx2 deals with certificates, proxies and encodings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import httpx2

from npl_mcp.cli.transports.addresses import Address
from npl_mcp.cli.transports.base import TransportError
from npl_mcp.cli.transports.local import MAX_BODY_BYTES, USER_AGENT, Answer

CONNECT_SECONDS = 1.0


class RemoteConnection:
    """A connection to a server on another machine; see
    :class:`~npl_mcp.cli.transports.local.LocalConnection`.

    :param address: of the server.
    """

    def __init__(self, address: Address) -> None:
        host = f"[{address.host}]" if ":" in address.host else address.host
        self._client = httpx2.Client(
            base_url=f"{'https' if address.secure else 'http'}://{host}:{address.port}",
            headers={"User-Agent": USER_AGENT},
        )

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def request(
        self, method: str, path: str, headers: Mapping[str, bytes], body: bytes, seconds: float
    ) -> Answer:
        """Send a request and return its answer.

        :param seconds: longest time without a byte.
        :raises TransportError: there is no answer, or it is too long.
        """
        sent = method != "GET"  # which changes nothing
        given = {name: value.decode("latin-1") for name, value in headers.items()}
        timeout = httpx2.Timeout(seconds, connect=CONNECT_SECONDS)
        try:
            with self._client.stream(method, path, headers=given, content=body, timeout=timeout) as answer:
                return Answer(answer.status_code, frozenset(answer.headers), _body(answer.iter_bytes(), sent))
        except httpx2.ConnectTimeout:
            raise TransportError(f"does not answer within {CONNECT_SECONDS:g} s") from None
        except httpx2.ConnectError as error:
            raise TransportError(f"cannot be reached: {error}", absent=True) from None
        except httpx2.TimeoutException:
            raise TransportError(f"does not answer within {seconds:g} s", sent=sent) from None
        except httpx2.HTTPError as error:
            raise TransportError(f"closed the connection: {error}", sent=sent) from None


def _body(parts: Iterable[bytes], sent: bool) -> bytes:
    data = bytearray()
    for part in parts:
        data += part
        if len(data) > MAX_BODY_BYTES:
            raise TransportError(f"answers with more than {MAX_BODY_BYTES >> 20} MiB", sent=sent)
    return bytes(data)
