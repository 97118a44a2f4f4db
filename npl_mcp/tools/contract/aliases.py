"""Former names of tools. They are accepted, but listed only with the setting ``exact-names``."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Alias:
    """The replacement of a former name.

    :param new: tool that replaces it.
    :param listed: whether to list this name, if the tool had several.
    :param fixed: arguments that the former name implies.
    """

    new: str
    listed: bool = True
    fixed: Mapping[str, object] = field(default_factory=dict)


RENAMED: Mapping[str, str] = {
    "create_session": "session_create",
    "get_session": "session_get",
    "list_sessions": "session_list",
    "update_session": "session_update",
    "create_artifact": "artifact_create",
    "add_revision": "artifact_add_revision",
    "list_artifacts": "artifact_list",
    "get_artifact_history": "artifact_history",
    "create_chat_room": "chat_create_room",
    "send_message": "chat_send_message",
    "react_to_message": "chat_react",
    "share_artifact": "chat_share_artifact",
    "create_todo": "chat_create_todo",
    "get_chat_feed": "chat_get_feed",
    "get_notifications": "chat_get_notifications",
    "mark_notification_read": "chat_mark_read",
    "create_review": "review_create",
    "add_inline_comment": "review_add_comment",
    "add_overlay_annotation": "review_add_annotation",
    "get_review": "review_get",
    "generate_annotated_artifact": "review_generate_annotated",
    "complete_review": "review_complete",
}
"""Former names of tools with unchanged parameters."""

DIRECTIVE: Mapping[str, tuple[str, ...]] = {
    "directive_files_list": ("directive/files.list", "directive.files.list"),
    "directive_file_get": ("directive/file.get", "directive/files.get", "directive.file.get"),
    "directive_spec_template": ("directive/spec.template", "directive/templates.spec", "spec.template"),
    "directive_impact_template": (
        "directive/impact.template",
        "directive/templates.impact",
        "impact.template",
    ),
    "directive_tdr_template": ("directive/tdr.template", "directive/templates.tdr", "tdr.template"),
}
"""Former names of Directive's tools; the name of their contract comes first."""

CHANGE_REQUESTS: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "get_cr_full_content": ("get_cr", {"mode": "full"}),
    "get_cr_attributes": ("get_cr", {"mode": "attributes"}),
    "list_cr_sections": ("manage_cr_sections", {"operation": "list"}),
    "get_cr_section": ("manage_cr_sections", {"operation": "get"}),
    "update_cr_section": ("manage_cr_sections", {}),
}
"""Former names of tools for change requests that were joined, with the arguments that they imply."""

ALIASES: Mapping[str, Alias] = {
    # Its answer has the file in base64 whatever the type.
    "get_artifact": Alias("artifact_get", fixed={"text": False}),
    **{old: Alias(new) for old, new in RENAMED.items()},
    **{old: Alias(new, listed=old == olds[0]) for new, olds in DIRECTIVE.items() for old in olds},
    **{old: Alias(new, listed=False, fixed=fixed) for old, (new, fixed) in CHANGE_REQUESTS.items()},
}
"""All former names. Unlike the new names, they may have characters that some model providers refuse."""


def usable_aliases(tools: Collection[str]) -> dict[str, Alias]:
    """Return the former names of a server's tools.

    :param tools: names of its tools.
    """
    return {old: alias for old, alias in ALIASES.items() if alias.new in tools}
