"""Requests to another machine or over TLS: certificates, proxies and encodings are httpx's business."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from npl_mcp import __version__
from npl_mcp.cli.transports.wire import CONNECT_FAR, LONGEST_BODY, Address, Answer, WireError


class FarLine:
    """A connection to a server on another machine; see :class:`~npl_mcp.cli.transports.wire.Line`.

    :param where: its address.
    """

    def __init__(self, where: Address) -> None:
        # Takes longer to load than a server on this machine takes to answer.
        import httpx

        self._httpx = httpx
        host = f"[{where.host}]" if ":" in where.host else where.host
        self._client = httpx.Client(
            base_url=f"{'https' if where.secure else 'http'}://{host}:{where.port}",
            headers={"User-Agent": f"npl-cli/{__version__}"},
        )

    def close(self) -> None:
        """Close it."""
        self._client.close()

    def ask(
        self, method: str, path: str, headers: Mapping[str, bytes], body: bytes, seconds: float
    ) -> Answer:
        """Send a request and read the answer.

        :param seconds: longest time without a byte.
        :raises WireError: no answer came, or one that is too long.
        """
        sent = method != "GET"  # which changes nothing
        httpx = self._httpx
        given = {name: value.decode("latin-1") for name, value in headers.items()}
        timeout = httpx.Timeout(seconds, connect=CONNECT_FAR)
        try:
            with self._client.stream(method, path, headers=given, content=body, timeout=timeout) as answer:
                return Answer(answer.status_code, dict(answer.headers), self._body(answer.iter_bytes(), sent))
        except httpx.ConnectTimeout:
            raise WireError(f"does not answer within {CONNECT_FAR:g} s") from None
        except httpx.ConnectError as error:
            raise WireError(f"cannot be reached: {error}", absent=True) from None
        except httpx.TimeoutException:
            raise WireError(f"does not answer within {seconds:g} s", sent=sent) from None
        except httpx.HTTPError as error:
            raise WireError(f"ended the connection: {error}", sent=sent) from None

    @staticmethod
    def _body(parts: Iterable[bytes], sent: bool) -> bytes:
        data = bytearray()
        for part in parts:
            data += part
            if len(data) > LONGEST_BODY:
                raise WireError(f"answers with more than {LONGEST_BODY >> 20} MiB", sent=sent)
        return bytes(data)
