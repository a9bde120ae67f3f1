"""What users of NumPy, SciPy, pandas, Dask, scikit-learn and others type works, or the error says the way.

``python tests/habits/test_habits.py`` writes the lists anew as things are: a mark of one that works is gone.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import dask
import matplotlib
import pytest

sys.path.append(str(Path(__file__).parents[1]))  # where it is run as a script

from habits.habits import GAP, HERE, Habit, Outcome, SourceFacts, habits_of, judged, parsed
from habits.worlds import TOLERANCES, WORLDS, drawn, folder

import matnb as mn

# Of all habits so many work, and so few raise, or give another value, and do not say what to write.
# Change these only for the better.
SHARE_THAT_WORKS = 0.8
WITHOUT_THE_WAY = 5


@pytest.fixture(scope="module", autouse=True)
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    before = matplotlib.get_backend()
    matplotlib.use("agg")
    alone = dask.config.set(scheduler="synchronous")  # else the peer keeps threads
    with alone, mn.start(workers=2, threads=1), folder(tmp_path_factory.mktemp("habits")):
        yield
    mn.stop()
    matplotlib.use(before)


def outcomes(name: str) -> list[tuple[Habit, SourceFacts]]:
    """Do the habits of a list, each with fresh names."""
    tolerance = TOLERANCES.get(name, 1e-9)
    return [(one, judged(one, WORLDS[name], drawn, tolerance)) for one in habits_of(HERE / f"{name}.txt")]


ALLOWED: dict[Outcome, tuple[Outcome, ...]] = {
    "works": ("works",),
    "says": ("works", "says"),
    "raises": ("works", "says", "raises", "differs"),
}


def mark(habit: Habit) -> Outcome:
    """Return what the list says of a habit."""
    return "works" if not habit.words else "raises" if habit.words == GAP else "says"


@pytest.mark.parametrize("name", WORLDS)
def test_habits_work_or_the_error_says_the_way(name: str, record_property: pytest.RecordProperty) -> None:
    found = outcomes(name)
    worse = [
        f"{habit.typed}: {result.outcome}: {result.text}"
        for habit, result in found
        if result.outcome not in ALLOWED[mark(habit)]
    ]
    counts = Counter(result.outcome for _, result in found)
    record_property("habits", dict(counts))
    assert not worse, "\n".join([f"{len(worse)} of {len(found)} habits, of {name}.txt:", *worse])


def test_the_lists_may_only_get_better() -> None:
    marks = [mark(one) for name in WORLDS for one in habits_of(HERE / f"{name}.txt")]
    assert len(marks) >= 376
    assert marks.count("works") / len(marks) >= SHARE_THAT_WORKS
    assert marks.count("raises") <= WITHOUT_THE_WAY


def test_no_habit_is_listed_twice_and_lines_read_as_they_are_written() -> None:
    for name in WORLDS:
        habits = habits_of(HERE / f"{name}.txt")
        assert len({one.typed for one in habits}) == len(habits), name
        assert [parsed(one.line()) for one in habits] == habits


def test_a_habit_is_judged_by_what_comes() -> None:
    def judge(line: str) -> Outcome:
        return judged(parsed(line), WORLDS["numpy"], drawn, 1e-9).outcome

    assert judge("x.mean(axis=0)") == "works"
    assert judge("x.mean(axis=0) -> x.mean(axis=1)") == "differs"
    assert judge("x.sum() -> x.sum() > 0") == "differs"
    assert judge("x.nothing_like_it !! write") == "raises"
    assert judge("np.fft.fft(w) !! compute") == "says"


def written() -> None:
    """Write each list with the marks that are true now."""
    matplotlib.use("agg")
    with mn.start(workers=2, threads=1), tempfile.TemporaryDirectory() as path, folder(Path(path)):
        for name in WORLDS:
            file = HERE / f"{name}.txt"
            said = [line for line in file.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
            for habit, found in outcomes(name):
                words = "" if found.outcome == "works" else habit.words if found.outcome == "says" else GAP
                said.append(Habit(habit.typed, habit.peer, words).line())
                if words == GAP:
                    print(f"{name}: {habit.typed}: {found.text}")
            file.write_text("\n".join(said) + "\n", encoding="utf-8")
    mn.stop()


if __name__ == "__main__":
    written()
