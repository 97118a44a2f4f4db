"""Templates for specs, impact analyses and design reviews, from the project's ``directive/`` folder."""

from __future__ import annotations

from npl_mcp.app.context import Context
from npl_mcp.projects.directive import Bundle, Directive, TextFile
from npl_mcp.stores.base.paging import MAX_PAGE, Page, Slice
from npl_mcp.tools.contract.spec import ToolSpec


def directive_files_list(app: Context, limit: int | None = None, offset: int | None = None) -> Page[str]:
    """List files under directive/.

    :returns: a page of the sorted paths; each begins with ``directive/``.
    :raises InvalidRequestError: the limit or the offset is out of range.
    :raises DocumentNotFoundError: no search root has a ``directive/`` folder.
    :raises OutsideRootError: the folder is a link that leads out of every root.
    :raises DocumentTooLargeError: the folder has too many files.
    """
    part = Slice.parse(limit, offset, MAX_PAGE)
    return part.cut(Directive(app.library).files())


def directive_file_get(app: Context, path: str) -> TextFile:
    """Read a file under directive/ by `path`.

    :param path: path of the file; ``directive/`` before it does not count.
    :returns: a file and its text.
    :raises InvalidRequestError: no file can have this name.
    :raises DocumentNotFoundError: there is no such file, or no ``directive/`` folder.
    :raises OutsideRootError: the path or a link leads out of the folder.
    :raises UnreadableDocumentError: the file is not a regular file, or not UTF-8.
    :raises DocumentTooLargeError: the file is larger than the limit.
    """
    return TextFile(path, Directive(app.library).read(path))


def directive_spec_template(app: Context) -> Bundle:
    """Return AOP, Agent Context, Spec template, and a concise Primer.

    :returns: a template with the files that an agent needs to fill it in.
    :raises DocumentNotFoundError: a file of the bundle or the ``directive/`` folder is missing.
    :raises DocumentError: a file of the bundle cannot be read.
    """
    return Directive(app.library).bundle("spec")


def directive_impact_template(app: Context) -> Bundle:
    """Return AOP, Agent Context, Impact template, and a concise Primer.

    :returns: a template with the files that an agent needs to fill it in.
    :raises DocumentNotFoundError: a file of the bundle or the ``directive/`` folder is missing.
    :raises DocumentError: a file of the bundle cannot be read.
    """
    return Directive(app.library).bundle("impact")


def directive_tdr_template(app: Context) -> Bundle:
    """Return AOP, Agent Context, TDR template, and a concise Primer.

    :returns: a template with the files that an agent needs to fill it in.
    :raises DocumentNotFoundError: a file of the bundle or the ``directive/`` folder is missing.
    :raises DocumentError: a file of the bundle cannot be read.
    """
    return Directive(app.library).bundle("tdr")


TOOLS = (
    ToolSpec(directive_files_list, title="List Directive Files"),
    ToolSpec(directive_file_get, title="Read Directive File", closed=True),
    ToolSpec(directive_spec_template, title="Spec Template Bundle"),
    ToolSpec(directive_impact_template, title="Impact Template Bundle"),
    ToolSpec(directive_tdr_template, title="TDR Template Bundle"),
)
