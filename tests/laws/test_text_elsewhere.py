"""Text is strings wherever a table goes, and codes again where it comes back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matnb as mn
from matnb.errors import OptionError

pytestmark = pytest.mark.session("two threads")


TEXTS = st.lists(st.one_of(st.none(), st.text(max_size=4)), min_size=1, max_size=6)


@settings(max_examples=15)
@given(TEXTS)
def test_frames_have_strings(texts: list[str | None]) -> None:
    t = mn.table({"zone": pa.array(texts, pa.string()), "n": list(range(len(texts)))})
    wanted = pd.Series(texts, dtype=pd.Series(["a"]).dtype, name="zone")
    made = t.to_pandas()
    pd.testing.assert_series_equal(made["zone"], wanted)
    pd.testing.assert_series_equal(made["zone"] + "-", wanted + "-")
    made.loc[0, "zone"] = "another"
    categories = t.to_pandas(strings_to_categorical=True)["zone"]
    assert isinstance(categories.dtype, pd.CategoricalDtype)
    assert categories.dropna().tolist() == wanted.dropna().tolist()
    assert pa.table(t).schema.field("zone").type == pa.string()
    assert pa.types.is_dictionary(t.to_arrow().schema.field("zone").type)


def test_polars_has_strings() -> None:
    polars = pytest.importorskip("polars")
    t = mn.table({"zone": ["b", None, "a"]})
    for frame in (t.to_polars(), polars.DataFrame(t)):
        assert frame["zone"].dtype == polars.String
        assert frame["zone"].to_list() == ["b", None, "a"]


@pytest.mark.parametrize(
    ("suffix", "read"),
    [(".parquet", pyarrow.parquet.read_table), (".feather", pyarrow.feather.read_table)],
)
@settings(max_examples=10)
@given(texts=TEXTS)
def test_files_have_strings(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, read: Callable[..., Any], texts: list[str | None]
) -> None:
    path = Path(tmp_path_factory.mktemp("files")) / f"t{suffix}"
    mn.save(mn.table({"zone": pa.array(texts, pa.string())}), path)
    there = read(path)
    assert there.schema.field("zone").type == pa.string()
    assert there["zone"].to_pylist() == texts
    again = mn.load(path)["zone"]
    assert again.codes.dtype == "int32"
    assert again.compute().tolist() == [np.nan if one is None else one for one in texts]


@pytest.mark.parametrize(("sep", "decimal"), [(";", ","), ("\t", "."), ("|", ","), (",", ".")])
def test_csv_has_the_marks_that_are_asked_for(tmp_path: Path, sep: str, decimal: str) -> None:
    frame = pd.DataFrame({"zone": ["a;b", None, "1,5"], "fare": [1.5, -0.25, None], "n": [1, 2, 3]})
    t = mn.table(frame)
    mn.save(t, tmp_path / "one.csv", sep=sep, decimal=decimal)
    t.to_csv(tmp_path / "two.csv", sep=sep, decimal=decimal)
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "one.csv", sep=sep, decimal=decimal), frame)
    assert mn.load(tmp_path / "one.csv", sep=sep, decimal=decimal).equals(t)


def test_other_marks_and_matrices_are_refused(tmp_path: Path) -> None:
    t = mn.table({"zone": ["a"], "k": [1], "fare": [1.5]})
    for options in ({"decimal": ","}, {"sep": "5"}, {"sep": ";;"}, {"decimal": ";"}):
        with pytest.raises(OptionError, match='give sep=";" and decimal=","'):
            mn.save(t, tmp_path / "t.csv", **options)
    with pytest.raises(OptionError, match=r"of \.csv"):
        mn.save(t, tmp_path / "t.parquet", sep=";")
    P, path = t.pivot("zone", "k", "fare"), tmp_path / "p.csv"
    with pytest.raises(OptionError, match=r"P\.to_pandas\(\)\.to_csv\(path\) writes a pivot"):
        mn.save(P, path)
    P.to_pandas().to_csv(path)
    assert path.read_text().split() == [",1", "a,1.5"]
