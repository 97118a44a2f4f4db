"""Properties that are computed once for each object."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:

    class cached_property:  # noqa: N801
        """``functools.cached_property`` as of Python 3.12, without its earlier lock.

        Before 3.12, one lock served all objects of a class: a long computation for one document blocked all
        other threads for its whole duration.
        """

        def __init__(self, function):
            self._function, self.__doc__ = function, function.__doc__

        def __set_name__(self, owner, name):
            self._name = name

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            value = vars(instance)[self._name] = self._function(instance)
            return value


__all__ = ["cached_property"]
