"""``mn.memo``: what the session in use remembers, for a user to look at and to clear."""

from __future__ import annotations

from collections.abc import Mapping

from matnb.expr.nodes import Expr
from matnb.pictures.memo import MemoEntry, memo_html, memo_text
from matnb.session.current import active_session


class RememberedResults:
    """What the session in use remembers; shows itself as a table. There is one, ``mn.memo``.

    Results of cells and of ``compute()`` stay on the workers when no name is left for them, within the budget
    ``mn.start(memo=...)``; small values stay in this process. What is asked for again is found there,
    whatever names it has now. With ``memo="off"`` nothing outlasts its handles.

    Examples
    --------
    >>> import matnb as mn
    >>> float(mn.arange(1000.0).sum())
    499500.0
    >>> any(one.where == "value" for one in mn.memo.entries())
    True
    """

    def entries(self) -> tuple[MemoEntry, ...]:
        """Return what is remembered, the most bytes first; nothing without a session.

        Arrays that only names keep are told of, too: ``has_handle`` tells them apart.
        """
        return entries_with({})

    def clear(self, disk: bool = False) -> None:
        """Forget small values and every array without a name or another handle.

        Parameters
        ----------
        disk
            Whether the files in ``memo_dir`` are removed, too.
        """
        session = active_session()
        if session is not None:
            session.memo.clear(disk)

    def __repr__(self) -> str:
        return memo_text(self.entries())

    def _repr_html_(self) -> str:
        return memo_html(self.entries())


def entries_with(variables: Mapping[str, Expr]) -> tuple[MemoEntry, ...]:
    """Return what is remembered, with the names that a user has for it."""
    session = active_session()
    found = () if session is None else session.memo.entries(variables)
    return tuple(sorted(found, key=lambda one: (-one.num_bytes, one.expression)))


memo = RememberedResults()
