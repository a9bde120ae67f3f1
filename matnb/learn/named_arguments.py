"""Arguments by their names, also of what is nested in them: of estimators, and of the parts of a learner."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any, Self

from matnb.errors import OptionError, suggestion


class Named:
    """What was made with arguments, which are its attributes of the same names."""

    def _names(self) -> Iterable[str]:
        raise NotImplementedError

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments of the constructor by their names.

        Parameters
        ----------
        deep
            Also those of arguments that have arguments, as ``name__inner``.
        """
        found: dict[str, Any] = {}
        for name in self._names():
            found[name] = value = getattr(self, name)
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                found |= {f"{name}__{inner}": one for inner, one in value.get_params().items()}
        return found

    def _changed(self, params: Mapping[str, Any]) -> dict[str, Any]:
        # The arguments that are to be others, with what is nested in them.
        changed: dict[str, Any] = {}
        inner: dict[str, dict[str, Any]] = {}
        for name, value in params.items():
            first, is_nested, rest = name.partition("__")
            if first not in self._names():
                near = suggestion(first, tuple(self._names()))
                raise OptionError(f"{type(self).__name__} has no argument {first!r}; {near}")
            if is_nested:
                inner.setdefault(first, {})[rest] = value
            else:
                changed[name] = value
        for name, values in inner.items():
            value = changed.get(name, getattr(self, name))
            if not hasattr(value, "set_params"):
                raise OptionError(f"{type(self).__name__}: {name}={value!r} has no arguments of its own")
            changed[name] = value.set_params(**values)
        return changed


class LearnerPart(Named):
    """A frozen dataclass that is an argument of a learner: an optimizer, a regularizer, a mixin, a model."""

    def _names(self) -> Iterable[str]:
        return [one.name for one in fields(self)]  # type: ignore[arg-type]  # those that come of it are

    def set_params(self, **params: Any) -> Self:
        """Return one with other arguments; this one stays as it is.

        Parameters
        ----------
        params
            By name; ``name__inner`` is an argument's own.

        Raises
        ------
        OptionError
            For a name that there is not.

        Examples
        --------
        >>> import matnb as mn
        >>> mn.learn.Average(mn.learn.SGD(0.5)).set_params(optimizer__learning_rate=0.1).optimizer
        SGD(learning_rate=0.1, momentum=0.0, nesterov=False, schedule=None)
        """
        return replace(self, **self._changed(params))  # type: ignore[type-var]  # as above
