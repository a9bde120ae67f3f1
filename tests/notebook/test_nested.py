"""11_nested gives pandas' numbers of trips by zone, and those known of documents and of a graph."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from kernels import NESTED, client_of, with_parameters

pytestmark = pytest.mark.notebook

SAVED = """
found = dict(
    total=total, mean=mean, dearest=dearest, longest_wait=longest_wait, num_sessions=num_sessions,
    per_session=per_session, number=number.values, running=running.values, by_hour=longest_by_hour,
    tokens=num_tokens, num_counts=counts.num_values, terms=terms.values, how_often=counts.values,
    typical=typical, triangles=num_triangles, closest=closest.places.values, in_common=closest.values.values,
    at=closest.places.offsets,
)
np.savez("found.npz", **{name: np.asarray(one) for name, one in found.items()})
"""
TOKENS, COUNTS = 84_010, 60_114  # of lda_reuters
TRIANGLES = 17_899  # of jazz


@pytest.mark.slow
def test_real_trips_documents_and_graph(test_data: Path, tmp_path: Path) -> None:
    (path,) = (test_data / "nyc_yellow_2019-01_7500").glob("*.csv")
    reuters = test_data / "lda_reuters" / "reuters.ldac"
    jazz = test_data / "networkit" / "jazz.graph"
    parameters = f"trips, documents, graph = {str(path)!r}, {str(reuters)!r}, {str(jazz)!r}"
    client_of(with_parameters(NESTED, parameters, SAVED), tmp_path).execute()
    found = dict(np.load(tmp_path / "found.npz"))

    given = pd.read_csv(path)
    trips = pd.DataFrame({"zone": given.pickup_location_id, "fare": given.fare_amount})
    trips["when"] = pd.to_datetime(given.pickup_datetime)
    trips = trips.sort_values(["zone", "when"], kind="stable").reset_index(drop=True)
    zones = trips.groupby("zone")
    filled = sorted(zones.groups)
    np.testing.assert_allclose(found["total"][filled], zones.fare.sum(), rtol=1e-12)
    np.testing.assert_allclose(found["mean"][filled], zones.fare.mean(), rtol=1e-12)
    assert np.isnan(found["mean"]).sum() == len(found["mean"]) - len(filled)
    assert found["dearest"][filled].tolist() == zones.fare.apply(lambda one: int(np.argmax(one))).tolist()
    np.testing.assert_allclose(found["running"], zones.fare.cumsum(), rtol=1e-12)

    wait = zones.when.diff().dt.total_seconds() / 60
    begins = wait.isna() | (wait > 60)
    number = begins.groupby(trips.zone).cumsum()
    assert found["number"].tolist() == number.tolist()
    assert found["num_sessions"][filled].tolist() == begins.groupby(trips.zone).sum().tolist()
    np.testing.assert_allclose(
        found["per_session"], trips.fare.groupby([trips.zone, number]).sum(), rtol=1e-9, atol=1e-9
    )
    longest = wait.fillna(0).groupby(trips.zone).max()
    np.testing.assert_allclose(found["longest_wait"][filled], longest, atol=1e-6)
    by_hour = wait.fillna(0).groupby(24 * trips.zone + trips.when.dt.hour).max()
    np.testing.assert_allclose(found["by_hour"][by_hour.index], by_hour, atol=1e-6)

    rows = reuters.read_text().split("\n")[:395]
    pairs = [[tuple(map(int, one.split(":"))) for one in row.split()[1:]] for row in rows]
    assert found["tokens"].tolist() == [sum(count for _, count in row) for row in pairs]
    assert found["tokens"].sum() == TOKENS
    assert found["num_counts"] == sum(map(len, pairs)) == COUNTS
    each = zip(found["terms"].tolist(), found["how_often"].tolist(), strict=True)
    assert list(each) == [pair for row in pairs for pair in sorted(row)]
    occurs_in = np.bincount([term for row in pairs for term, _ in row])
    for row, term in zip(pairs, found["typical"].tolist(), strict=True):
        weight = {term: count * np.log(395 / occurs_in[term]) for term, count in row}
        assert weight[term] == pytest.approx(max(weight.values()))

    rows = [list(map(int, line.split())) for line in jazz.read_text().splitlines()[1:]]
    neighbors = [{one - 1 for one in row} for row in rows]
    assert found["triangles"] == TRIANGLES
    for vertex, (begin, end) in enumerate(pairwise(found["at"])):
        common = {one: len(neighbors[vertex] & neighbors[one]) for one in neighbors[vertex]}
        most = sorted((one for one in common if common[one]), key=lambda one: (-common[one], one))[:3]
        assert found["closest"][begin:end].tolist() == most
        assert found["in_common"][begin:end].tolist() == [common[one] for one in most]
