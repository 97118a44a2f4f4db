"""numpy, imported at its first use.

The import takes a tenth of a second with rank_bm25, and a process that never searches needs neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["NDArray", "np"]

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:

    class _Numpy:
        def __getattr__(self, name: str) -> Any:
            import numpy

            value = self.__dict__[name] = getattr(numpy, name)  # the next time it is an attribute
            return value

    np = _Numpy()
    NDArray = list  # only annotations name it
