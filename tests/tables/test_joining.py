"""What a join takes and refuses, what its columns are called, and that nothing is made that has no room."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import matnb as mn
from matnb.errors import ColumnError, DTypeError, OptionError, TooLargeError, UnsupportedError

pytestmark = pytest.mark.session("two workers")


def trips() -> mn.Table:
    """Return five rows, of which one has a key that is nowhere else."""
    return mn.table({"zone": ["b", "a", "b", "c", "a"], "fare": np.arange(5.0), "n": np.arange(5)})


def zones() -> mn.Table:
    """Return a row for each of three keys."""
    return mn.table({"zone": ["a", "b", "d"], "n": [10, 20, 30], "is_far": [True, False, True]})


def test_rows_of_the_left_alone_keep_whole_numbers_and_booleans() -> None:
    found = trips().merge(zones(), how="left", on="zone")
    assert found.columns == ("zone", "fare", "n_x", "n_y", "is_far")
    assert isinstance(found["n_y"], mn.MaskedColumn)
    assert isinstance(found["is_far"], mn.MaskedColumn)
    frame = found.to_pandas()
    assert frame["n_y"].tolist() == [20, 10, 20, pd.NA, 10]
    assert str(frame["is_far"].dtype) == "boolean"
    # Where each row meets one, nothing is missing, and nothing has another type.
    all_there = trips()[:3].merge(zones(), how="left", on="zone")
    assert all_there.dtypes["n_y"] == np.int64


def test_columns_are_named_as_in_pandas() -> None:
    left, right = pd.DataFrame({"k": [1, 2], "a": [1, 2]}), pd.DataFrame({"j": [2, 1], "k": [3, 4], "b": 0})
    for options in ({}, {"suffixes": ("_l", None)}, {"suffixes": ("", "_r")}, {"indicator": "side"}):
        found = mn.table(left).merge(mn.table(right), left_on="k", right_on="j", **options)
        expected = left.merge(right, left_on="k", right_on="j", **options)
        assert found.columns == tuple(expected.columns)
    for how in ("left", "right", "outer"):
        found = mn.table(left).merge(right, how=how, on="k", indicator=True)
        expected = left.merge(right, how=how, on="k", indicator=True)
        assert found.to_pandas()["_merge"].tolist() == expected["_merge"].tolist()


def test_keys_of_two_names_stay_two_columns() -> None:
    left, right = pd.DataFrame({"k": [3, 1]}), pd.DataFrame({"j": [2, 3]})
    found = mn.table(left).merge(right, how="outer", left_on="k", right_on="j").to_pandas()
    assert found["k"].tolist() == [1, pd.NA, 3]
    assert found["j"].tolist() == [pd.NA, 2, 3]


def test_each_row_meets_several() -> None:
    n, m = 1000, 800
    left = pd.DataFrame({"k": np.arange(n) % 40, "a": np.arange(n)})
    right = pd.DataFrame({"k": np.arange(m) % 50, "b": np.arange(m)})
    found = mn.table(left).merge(mn.table(right), on="k")
    assert len(found) == 1000 * 16
    pd.testing.assert_frame_equal(found.to_pandas(), left.merge(right, on="k"))


def test_what_has_no_room_is_refused_before_it_is_made() -> None:
    ones = mn.table({"k": mn.zeros(3_000_000, dtype=np.int8), "v": mn.ones(3_000_000)})
    with pytest.raises(TooLargeError, match=r"9,000,000,000,000 rows .* up to 3,000,000 rows .*validate="):
        ones.merge(ones, on="k")
    with pytest.raises(UnsupportedError, match="give keys"):
        ones.merge(ones, how="cross")


def test_keys_that_are_to_be_unique_are_counted() -> None:
    assert len(trips().merge(zones(), on="zone", validate="m:1")) == 4
    with pytest.raises(OptionError, match="'zone' of the left table are not unique"):
        trips().merge(zones(), on="zone", validate="one_to_one")
    with pytest.raises(OptionError, match="'zone' of the right table are not unique"):
        zones().merge(trips(), on="zone", validate="m:1")


def test_wrong_arguments_say_what_to_write() -> None:
    one, two = trips(), zones()
    wrong: list[tuple[dict[str, object], type[Exception], str]] = [
        ({"on": "zon"}, ColumnError, "'zone'"),
        ({"how": "full", "on": "zone"}, OptionError, "write 'outer'"),
        ({"how": "innr"}, OptionError, "'inner'"),
        ({"on": "zone", "left_on": "n"}, OptionError, "give on="),
        ({"left_on": "n"}, OptionError, "left_on= and right_on="),
        ({"left_on": ["n", "zone"], "right_on": "n"}, OptionError, "2 keys on the left and 1"),
        ({"left_on": "zone", "right_on": "n"}, DTypeError, "to_int"),
        ({"on": "zone", "suffixes": ("", "")}, OptionError, "suffixes"),
        ({"on": "zone", "validate": "1:2"}, OptionError, "'1:1'"),
    ]
    for options, error, words in wrong:
        with pytest.raises(error, match=words):
            one.merge(two, **options)
    with pytest.raises(OptionError, match="no column name in common"):
        one[["fare"]].merge(two[["n"]])
    with pytest.raises(AttributeError, match=r"t\.merge\(other, on="):
        one.join(two)


def test_times_meet_as_instants_and_not_without_a_zone() -> None:
    when = pd.Series(pd.to_datetime(["2024-03-31 01:30", "2024-10-27 01:30"])).dt.tz_localize("UTC")
    turned = when.dt.tz_convert("Europe/Berlin")[::-1].reset_index(drop=True)
    one, two = mn.table({"t": when, "a": [1, 2]}), mn.table({"t": turned})
    assert one.merge(two, on="t")["a"].compute().tolist() == [1, 2]
    with pytest.raises(DTypeError, match="to_zone"):
        one.merge(mn.table({"t": when.dt.tz_localize(None)}), on="t")
