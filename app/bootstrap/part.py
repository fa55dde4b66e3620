"""A part of a container, made when it is first asked for."""

from functools import cached_property
from typing import Any, Self, TypeVar, overload

T = TypeVar("T")


class part(cached_property[T]):  # noqa: N801  # A decorator, as `property` is.
    """A cached property that two threads never make twice; from Python 3.12 on the library's may.

    The container holds one lock, `making`, for all its parts, because they ask for each other.
    """

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> T: ...
    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        """Return the part; once it is made, Python takes it from the container's `__dict__`."""
        if instance is None:
            return self
        with instance.making:
            made = instance.__dict__
            if self.attrname not in made:
                made[self.attrname] = self.func(instance)
            return made[self.attrname]
