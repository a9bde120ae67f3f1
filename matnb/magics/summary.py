"""What is shown under a cell, and whether somebody is there to see it live."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from IPython.core.interactiveshell import InteractiveShell

from matnb.balance.decision import Decision, HistoryItem
from matnb.events import LoopFinished, Rebalanced
from matnb.lazy.recording import Recording
from matnb.pictures.escaping import escaped
from matnb.pictures.facts import HistoryFacts
from matnb.pictures.history import decisions_text, is_repeatable, last_text
from matnb.pictures.memo import MemoEntry, memo_html, memo_text
from matnb.pictures.picture import Picture
from matnb.pictures.quantities import bytes_text, plural_text
from matnb.pictures.summary import LoopFacts, RepartitionFacts, SummaryFacts, summary_html, summary_text
from matnb.plan.report import RunReport
from matnb.session import Session, Status
from matnb.session.history_view import HistoryView, decision_facts

QUIET_SECONDS = 0.2  # live, a shorter run shows only its value
MOST_DRAWN = 2000  # tasks; the plan of more is described as it was made, before it ran
METADATA = "matnb"  # where a run's measured numbers lie beside its summary, never in it


def show_recorded(record: Recording, shell: InteractiveShell) -> None:
    """Show the summary of a cell of which nothing was run."""
    _publish(SummaryFacts(record.num_operations, record.num_merged, notes=tuple(record.notes)), {}, shell)


def show_run(
    report: RunReport, live: bool, shell: InteractiveShell, draw: Callable[[], Picture | None] | None = None
) -> None:
    """Show the summary of a cell's run.

    Live it tells measured numbers too, and is left out after a short run. Otherwise only counts are shown, so
    that the same notebook always prints the same; what was measured goes into the output's metadata.

    Parameters
    ----------
    draw
        Draws what ran with what was measured of it. It is called live only, and where the run was so long and
        of so few tasks that drawing takes little beside it.
    """
    run = report.finished
    is_told = report.left_lazy or report.workers_text or report.notes
    if live and run.seconds < QUIET_SECONDS and not is_told:
        return
    has_run = run.num_tasks > 0 or bool(report.loops)
    is_drawn = live and has_run and run.seconds >= QUIET_SECONDS and run.num_tasks <= MOST_DRAWN
    picture = draw() if is_drawn and draw is not None else None
    measured = {"seconds": run.seconds, "imbalance": run.imbalance, "actual_bytes": run.actual_bytes}
    facts = SummaryFacts(
        num_operations=run.num_operations,
        num_merged=run.num_merged,
        num_run=run.num_run,
        num_arrays=run.num_arrays,
        num_remembered=run.num_remembered,
        num_tasks=run.num_tasks,
        moved_bytes=run.moved_bytes,
        projected_bytes=run.projected_bytes,
        left_lazy=report.left_lazy,
        workers_text=report.workers_text,
        plan_text=report.plan_text() if picture is None else "",
        plan_html="" if picture is None else picture.bundle()["text/html"],
        loops=tuple(_loop_facts(one, live) for one in report.loops),
        repartitions=_repartition_facts(report.repartitions, live),
        notes=report.notes,
        num_gave_way=run.num_gave_way if live else 0,
        seconds=run.seconds if live else None,
        imbalance=run.imbalance if live else None,
        actual_bytes=run.actual_bytes if live else None,
    )
    _publish(facts, measured, shell)


def _loop_facts(loop: LoopFinished, live: bool) -> LoopFacts:
    return LoopFacts(
        iterations=None if loop.is_branch else loop.iterations,
        num_tasks=loop.num_tasks,
        num_workers=loop.num_members,
        reason=loop.reason,
        sent_bytes=loop.sent_bytes,
        seconds=loop.seconds if live else None,
    )


def _repartition_facts(repartitions: Sequence[Rebalanced], live: bool) -> tuple[RepartitionFacts, ...]:
    # What was decided by measured times is not the same every time.
    by_name: dict[str, list[Rebalanced]] = {}
    for one in repartitions:
        if live or is_repeatable(one.policy, one.acted, one.by_entries):
            by_name.setdefault(one.name, []).append(one)
    return tuple(
        RepartitionFacts(
            name,
            len(ones),
            (ones[0].imbalance_before, ones[-1].imbalance_after)
            if live or all(one.by_entries for one in ones)
            else None,
            sum(one.seconds for one in ones) if live else None,
        )
        for name, ones in by_name.items()
    )


def status_text(status: Status) -> str:
    """Return what a session runs on and what it keeps, in a few lines."""
    stored = f"{bytes_text(status.stored_bytes)} of {bytes_text(status.memo_bytes)}"
    kept = f"{plural_text(status.num_arrays, 'array')} kept, {stored}"
    if status.num_gave_way:
        kept += f"; {plural_text(status.num_gave_way, 'array')} with a name gave way"
    memo = "memo off"
    if status.remembers:
        idle = plural_text(status.num_remembered, "array")
        values = plural_text(status.num_values, "small value")
        memo = f"memo: {idle} without a name, {bytes_text(status.remembered_bytes)}; {values}"
    if status.memo_dir:
        memo += f"; {bytes_text(status.file_bytes)} of files in {status.memo_dir}"
    gone = f"{status.workers_text}\n" if status.workers_text else ""
    return f"{status.description}; engine {status.engine}\n{gone}{kept}\n{memo}"


def session_bundle(session: Session, include: object = None, exclude: object = None) -> dict[str, str]:
    """Return a session as text and as HTML: what it runs on, and what it keeps."""
    if session.ended:
        return {"text/plain": repr(session), "text/html": f"<div>{escaped(repr(session))}</div>"}
    first, *rest = status_text(session.status()).splitlines()
    below = "".join(f"<div>{escaped(line)}</div>" for line in rest)
    html = f'<div><div><b>{escaped(first)}</b></div><div style="opacity:.8">{below}</div></div>'
    return {"text/plain": "\n".join([repr(session), *rest]), "text/html": html}


def show_memo(entries: Sequence[MemoEntry], live: bool, shell: InteractiveShell) -> None:
    """Show what is remembered; what was measured only live."""
    bundle = {"text/plain": memo_text(entries, live), "text/html": memo_html(entries, live)}
    shell.display_pub.publish(bundle)


def setting_text(view: HistoryView, live: bool) -> str:
    """Return what rebalancing is set to, and the last decision."""
    return last_text(view.facts(live))


def asked_text(decisions: Sequence[Decision], live: bool) -> str:
    """Return what was decided when a user asked for it, a line for each decision."""
    if not decisions:
        return "nothing is stored that could be repartitioned"
    passed = tuple(decision_facts(HistoryItem(number, one)) for number, one in enumerate(decisions))
    return decisions_text(HistoryFacts(passed, measured=live))


def _publish(facts: SummaryFacts, measured: dict[str, float | int], shell: InteractiveShell) -> None:
    bundle = {"text/plain": summary_text(facts), "text/html": summary_html(facts)}
    shell.display_pub.publish(bundle, metadata={METADATA: measured} if measured else {})
