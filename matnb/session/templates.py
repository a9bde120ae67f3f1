"""The plans of earlier runs, by their form: a run of a form that was planned is not planned again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Container, Hashable, Mapping

from matnb.expr.nodes import Expr
from matnb.plan.constants import Unfit
from matnb.plan.structural_key import Form
from matnb.plan.templates import Planned, Template
from matnb.program.plan import Stored

_MOST = 64


class Templates:
    """Remembers the plans of the forms that were asked for last.

    Attributes
    ----------
    num_reused
        Runs that were not planned anew.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, Template | None] = OrderedDict()  # None: no template for the form
        self.num_reused = 0

    def planned(
        self,
        form_with: Callable[[bool], Form],
        known: Mapping[Expr, Stored],
        is_there: Container[Expr],
        anew: Callable[[], Planned],
        chooses: Callable[[Expr, int, int], bool],
    ) -> Planned:
        """Return a plan of an earlier run with other names, or one made anew.

        Parameters
        ----------
        form_with
            Gives the form of what is asked for, with the value of every constant or without those that may
            be others.
        known, is_there, chooses
            As :meth:`~matnb.plan.templates.Template.instance` has them.
        anew
            Makes the plan.
        """
        form = form_with(False)
        if form.numbers and form.key in self._kept and self._kept[form.key] is None:
            self._kept.move_to_end(form.key)
            form = form_with(True)
        template = self._kept.get(form.key)
        if template is not None:
            self._kept.move_to_end(form.key)
            try:
                planned = template.instance(form, known, is_there, chooses)
            except Unfit:
                planned = anew()
                self._kept[form.key] = _template(form, known, planned, is_there) or template
                return planned
            self.num_reused += 1
            return planned
        planned = anew()
        if form.key not in self._kept:
            self._keep(form, known, planned, is_there)
            if form.numbers and self._kept[form.key] is None:
                self._keep(form_with(True), known, planned, is_there)
        return planned

    def _keep(
        self, form: Form, known: Mapping[Expr, Stored], planned: Planned, is_there: Container[Expr]
    ) -> None:
        self._kept[form.key] = _template(form, known, planned, is_there)
        if len(self._kept) > _MOST:
            self._kept.popitem(last=False)


def _template(
    form: Form, known: Mapping[Expr, Stored], planned: Planned, is_there: Container[Expr]
) -> Template | None:
    try:
        return Template(form, known, planned, is_there)
    except Unfit:
        return None
