"""Names of sets of documents: what was asked for, and under which roots it was found."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from npl_index.errors import escaped
from npl_index.library.documents import DocumentRef


@dataclass(frozen=True, slots=True)
class SetName:
    """The name of a set, as the data folder keeps it and as people read it.

    :param text: JSON; any two sets that may differ have two names.
    """

    text: str

    @classmethod
    def of(
        cls, asked: DocumentRef, roots: Sequence[str], npl: Sequence[str], folders: Sequence[str] = ()
    ) -> SetName:
        """Make the name of a set.

        :param roots: paths of the roots that its files lie under.
        :param npl: those of them that are declared as NPL.
        :param folders: where the files lie, if their root does not say it.
        """
        parts = {
            "file": asked.file,
            "kind": asked.kind,
            "item": asked.item,
            "roots": roots,
            "npl": npl,
            "folders": folders,
        }
        return cls(json.dumps({name: part for name, part in parts.items() if part}))

    @property
    def file(self) -> str | None:
        """What was asked for as ``file``."""
        file = json.loads(self.text).get("file")
        return None if file is None else str(file)

    def __str__(self) -> str:
        try:
            parts = json.loads(self.text)
            asked = [str(parts[name]) for name in ("kind", "item", "file") if name in parts]
            shown = f"{' '.join(asked)} in " if asked else ""
            return escaped(f"{shown}{', '.join(map(str, parts['roots']))}")
        except (ValueError, TypeError, KeyError):
            return escaped(self.text)
