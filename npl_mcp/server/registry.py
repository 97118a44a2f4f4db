"""The list of tools: entries of FastMCP's for declared tools, with the schemas of their parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from fastmcp.tools.base import Tool
from mcp_types import ToolAnnotations
from pydantic import Field, InstanceOf, TypeAdapter

from npl_mcp.calls.arguments import validator
from npl_mcp.tools.contract.parameters import unlisted
from npl_mcp.tools.contract.responses import Reply, value_type
from npl_mcp.tools.contract.spec import ToolSpec

ALWAYS_LOAD = "anthropic/alwaysLoad"
"""Metadata key of a tool: clients with deferred loading of tools load it at once."""


class ListedTool(Tool):
    """The entry of a declared tool; :class:`~npl_mcp.calls.invoking.ToolCalls` calls the tool."""

    spec: InstanceOf[ToolSpec] = Field(exclude=True)

    @staticmethod
    @lru_cache(1_000)  # a shared process makes a server for each connection
    def of(spec: ToolSpec, token_budget: int, structured: bool) -> ListedTool:
        """Return the entry of a tool.

        :param token_budget: maximum tokens of answers to calls that name none.
        :param structured: whether answers have structured content.
        """
        schema = _compact(validator(spec.function).json_schema())
        hidden = unlisted(spec.function)
        shown = {name: part for name, part in schema["properties"].items() if name not in hidden}
        if "description" in (budget := shown.get("token_budget", {})):
            description = budget["description"].format(token_budget=token_budget)
            shown["token_budget"] = {**budget, "description": description}
        closed = {"additionalProperties": False} if spec.closed else {}
        return ListedTool(
            spec=spec,
            name=spec.name,
            description=spec.description,
            parameters={**schema, "properties": shown, **closed},
            output_schema=_reply_schema(spec.function) if structured else None,
            annotations=_annotations(spec),
        )

    def without_actors(self) -> ListedTool:
        """Return the tool for a caller with a token, which names the actor."""
        required = [name for name in self.parameters.get("required", ()) if name not in self.spec.actors]
        others = {name: part for name, part in self.parameters.items() if name != "required"}
        return self.model_copy(update={"parameters": others | ({"required": required} if required else {})})

    def to_mcp_tool(self, **overrides: Any) -> Any:
        """Return the entry for lists: the declared title and metadata, without FastMCP's own."""
        meta = {ALWAYS_LOAD: True} if self.spec.always else None
        return super().to_mcp_tool(**{**overrides, "title": self.spec.title, "_meta": meta})


def _annotations(spec: ToolSpec) -> ToolAnnotations:
    """Return the annotations that differ from the protocol's defaults.

    By default a tool writes, destroys, is not idempotent and reaches the open world. Every tool here stays on
    this machine or in the database. Destruction and idempotence have no meaning for a tool that only reads.
    """
    if spec.read_only:
        return ToolAnnotations(read_only_hint=True, open_world_hint=False)
    destructive, idempotent = None if spec.destructive else False, spec.idempotent or None
    return ToolAnnotations(destructive_hint=destructive, idempotent_hint=idempotent, open_world_hint=False)


def _compact(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON schema without the parts that cost tokens and do not inform an agent.

    Titles repeat names; ``null`` as an alternative, and ``null`` or ``false`` as a default, are equivalent to
    "not required". The schema does not say whether an object takes other properties: a call refuses unknown
    ones with the nearest names, and it knows some hidden ones.
    """
    # Behind a list or an object the type would cost a token more.
    kept: dict[str, Any] = {"type": schema["type"]} if "type" in schema else {}
    for key, value in schema.items():
        if value in _NOISE.get(key, ()) or (key == "title" and isinstance(value, str)):
            continue
        if key == "anyOf":
            options = [_compact(option) for option in value if option.get("type") != "null"]
            # A type in the annotation replaces them.
            kept |= {} if "type" in schema else options[0] if len(options) == 1 else {key: options}
        elif key == "properties":
            kept[key] = {name: _compact(part) for name, part in value.items()}
        else:
            kept[key] = _compact(value) if isinstance(value, Mapping) else value
    return kept


# "ge" is not a keyword of JSON Schema.
_NOISE = {"default": (None, False), "ge": (0,), "additionalProperties": (True, False)}


def _reply_schema(function: Callable[..., object]) -> dict[str, Any]:
    returned = value_type(inspect.signature(function, eval_str=True).return_annotation)
    schema = TypeAdapter(Reply[returned]).json_schema(mode="validation")  # type: ignore[valid-type]
    for part in (schema, *schema.get("$defs", {}).values()):
        # Answers omit fields that are None, and the places of a single replica.
        shown, null = part.get("properties", {}), {"type": "null"}
        required = (name for name in part.get("required", ()) if null not in shown[name].get("anyOf", ()))
        part["required"] = list(required)
    return schema
