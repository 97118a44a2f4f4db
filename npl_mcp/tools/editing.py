"""The tool that changes and makes Markdown files; a setting lists it."""

from __future__ import annotations

from typing import Annotated

from npl_mcp.core.app import App
from npl_mcp.core.section_edits import EditedSection, Operation, update_section
from npl_mcp.tools.spec import ToolSpec


def npl_update_section(
    app: App,
    file: Annotated[str, "One Markdown file below a root"],
    operation: Annotated[Operation, "delete: expect, no content; create: makes the file, no selector"],
    selector: Annotated[str | None, "Of one section, subsections included; [depth=0] spares them"] = None,
    content: str | None = None,
    expect: Annotated[str | None, "Digest you got; refused if changed since"] = None,
) -> EditedSection:
    """Change a section of a Markdown file; content may begin with a new heading. Append to the section above
    to add one.

    :returns: a section that was changed.
    :raises NotAllowedError: the server was started without --write, or the file lies below no root that
        the user gave.
    :raises AlreadyExistsError: the file that is to be made exists.
    :raises InvalidRequestError: an argument cannot be used, or the content cannot stand there.
    :raises SelectorSyntaxError: the selector cannot be read.
    :raises DocumentNotFoundError: there is no such file.
    :raises DocumentError: the file cannot be used.
    :raises SectionNotFoundError: no section is meant, or several are; the message has selectors that work.
    :raises ConflictError: the section is not as expected, or another program is writing the file.
    :raises TooLargeError: the file would be too large to be read.
    :raises StorageError: the file cannot be written.
    """
    return update_section(app, file, operation, selector or "", content or "", expect)


TOOLS = (
    ToolSpec(
        npl_update_section,
        title="Update Section",
        read_only=False,
        idempotent=False,
        destructive=True,
        listed=False,
        switch="write",
    ),
)
