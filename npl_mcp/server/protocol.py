"""The media type of resources and prompts, and the conversion of failures to errors of the protocol."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from fastmcp.exceptions import FastMCPError, ResourceError, ValidationError

from npl_index.errors import (
    InvalidRequestError,
    NotFoundError,
    NPLError,
    OutsideRootError,
)
from npl_mcp.app.call_reports import as_shown

MARKDOWN = "text/markdown"


@contextmanager
def protocol_errors(kind: type[FastMCPError] = ResourceError) -> Iterator[None]:
    """Turn expected failures into errors of the protocol with the same text; the log gets no traceback.

    :param kind: the error for failures other than wrong arguments; the protocol has a code for each kind.
    """
    try:
        yield
    except (InvalidRequestError, NotFoundError, OutsideRootError) as error:
        raise ValidationError(str(as_shown(error)), log_level=logging.DEBUG) from error
    except NPLError as error:
        raise kind(str(error), log_level=logging.DEBUG) from error
