"""numpy, imported at its first use, and the positions of the highest values.

The import takes a tenth of a second with rank_bm25, and a process that never searches needs neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["NDArray", "np", "top_positions"]

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


def top_positions(values: NDArray[Any], limit: int, copies: NDArray[Any] | None = None) -> NDArray[Any]:
    """Return the positions of the highest values above 0, highest first; of equal values, the first.

    :param copies: number of each position's text, 0 without one; of positions with one text, only the first
        is returned.
    """
    positive = (values > 0).nonzero()[0]
    # Sorting all of them would take longer; many of the best may have one text.
    for most in (4 * limit, len(positive)):
        best = positive
        if most < len(positive):
            best = positive[values[positive] >= np.partition(values[positive], -most)[-most]]
        best = best[(-values[best]).argsort(kind="stable")]
        if copies is not None:
            numbers = copies[best]
            kept = numbers == 0
            kept[np.unique(numbers, return_index=True)[1]] = True
            best = best[kept]
        if len(best) >= limit:
            break
    return best[:limit]
