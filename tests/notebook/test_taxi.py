"""03_taxi answers what was asked before from the memo, and gives pandas' numbers, of real trips too."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from kernels import TAXI, client_of, texts, with_parameters

pytestmark = pytest.mark.notebook

SAVED = """
np.savez(
    "found.npz", lowest=np.asarray(lowest), above=np.asarray(above), tipped=[float(one) for one in tipped],
    far_share=np.asarray(far_share), keys=np.asarray(by_mile.keys), trips=np.asarray(num_by_mile),
    fare=np.asarray(fare_by_mile), hours=np.asarray(by_hour["hour"]),
    tip_by_hour=np.asarray(by_hour["tip_amount"]),
)
"""


def checked(found: dict[str, np.ndarray], trips: pd.DataFrame) -> None:
    """Compare the notebook's answers with pandas'."""
    fares = trips.fare_amount
    assert found["lowest"] == fares.min()
    assert found["above"] == pytest.approx((fares > fares.mean()).mean())
    good = trips[(fares > 0) & (trips.trip_distance > 0)]
    good = good.assign(
        share=good.tip_amount / good.fare_amount, miles=np.minimum(good.trip_distance // 1, 20)
    )
    card = good.payment_type == 1
    assert found["tipped"].tolist() == pytest.approx([good.share[card].mean(), good.share[~card].mean()])
    assert found["far_share"] == pytest.approx(good.share[card & (good.trip_distance > 10)].mean())
    miles = good.groupby("miles").fare_amount
    assert found["keys"].tolist() == list(miles.groups)
    assert found["trips"].tolist() == miles.size().tolist()
    np.testing.assert_allclose(found["fare"], miles.mean(), rtol=1e-12)
    by_hour = good.tip_amount.groupby(pd.to_datetime(good.pickup_datetime).dt.hour).mean()
    assert found["hours"].tolist() == by_hour.index.tolist()
    np.testing.assert_allclose(found["tip_by_hour"], by_hour, rtol=1e-12)


@pytest.mark.slow
def test_made_up_trips_and_what_is_remembered_of_them(tmp_path: Path) -> None:
    copy = "import shutil\nnum_trips = 5000\nos_copy = shutil.copy"
    book = with_parameters(TAXI, copy, SAVED)
    place = next(i for i, cell in enumerate(book.cells) if "unlink()" in cell.source)
    book.cells[place].source = "os_copy(trips, 'kept.csv')\n" + book.cells[place].source
    client_of(book, tmp_path).execute()
    checked(dict(np.load(tmp_path / "found.npz")), pd.read_csv(tmp_path / "kept.csv"))
    heads = [text.splitlines()[0] for text in texts(book) if re.match(r"\d+ tasks?\b", text)]
    _, again, other, _, _, back, *_ = heads
    for answered in (again, back):
        assert re.fullmatch(r"0 tasks, \d+ results? reused", answered), answered
    assert other.endswith(", 2 results reused")  # the mean and the spread
    assert {path.name for path in tmp_path.iterdir()} == {"found.npz", "kept.csv"}


@pytest.mark.slow
def test_real_trips(test_data: Path, tmp_path: Path) -> None:
    folder = test_data / "nyc_yellow_2019-01_7500"
    (path,) = folder.glob("*.csv")
    client_of(with_parameters(TAXI, f"trips = {str(path)!r}", SAVED), tmp_path).execute()
    checked(dict(np.load(tmp_path / "found.npz")), pd.read_csv(path))
