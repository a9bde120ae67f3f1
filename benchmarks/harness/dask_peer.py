"""dask.array as a peer: on plain threads and on a distributed client, over SciPy blocks where sparse."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import dask
import dask.array as da
import scipy.sparse as sp
from distributed import Client, LocalCluster, wait

from harness.inputs import THREADS, equal_entry_cuts

BLOCKS = 8  # equal entries; fastest for A @ x of 2, 4, 8 and 16, of equal rows or entries


@dataclass(frozen=True)
class Scheduler:
    """One way to run a graph: on a client, or without one on threads of this process."""

    name: str
    client: Client | None

    @property
    def _options(self) -> dict[str, Any]:
        if self.client is None:
            return {"scheduler": "threads", "num_workers": THREADS}
        return {"scheduler": self.client}

    def compute(self, array: da.Array) -> Any:
        """Return an array's value in this process."""
        return array.compute(**self._options)

    def persist(self, array: da.Array) -> da.Array:
        """Return the array with its blocks computed and kept."""
        return self.persist_all(array)[0]

    def persist_all(self, *arrays: da.Array) -> tuple[da.Array, ...]:
        """Return arrays whose blocks are computed together and kept."""
        kept: tuple[da.Array, ...] = dask.persist(*arrays, **self._options)
        if self.client is not None:  # it returns at once
            with self.client.as_current():
                wait(kept)
        return kept


@contextmanager
def schedulers() -> Iterator[tuple[Scheduler, Scheduler]]:
    """Give both schedulers with as many threads as matnb has."""
    with (
        warnings.catch_warnings(),
        LocalCluster(
            n_workers=1,
            threads_per_worker=THREADS,
            processes=False,
            memory_limit=0,  # else it would wait for memory that others in this process hold
            dashboard_address=None,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        # Values given in this process make a large graph; sending it is part of what is asked for.
        warnings.filterwarnings("ignore", message="Sending large graph", category=UserWarning)
        yield Scheduler("dask.array, threads", None), Scheduler("dask.array, distributed", client)


def sparse_rows(matrix: sp.csr_array, scheduler: Scheduler) -> da.Array:
    """Return a SciPy matrix as a persisted dask array of SciPy row blocks of equal entries."""
    cuts = equal_entry_cuts(matrix.indptr, BLOCKS)
    meta = sp.csr_array((0, 0), dtype=matrix.dtype)
    width = matrix.shape[1]
    blocks = [
        da.from_delayed(dask.delayed(matrix[a:b], traverse=False), (b - a, width), matrix.dtype, meta)
        for a, b in itertools.pairwise(cuts)
    ]
    return scheduler.persist(da.concatenate(blocks))


def product(left: da.Array, right: da.Array) -> da.Array:
    """Return a matrix times a vector of one block; dask.array's own ``@`` does not take sparse blocks."""
    return da.blockwise(_product, "i", left, "ij", right, "j", dtype=left.dtype, concatenate=True)


def _product(block: Any, vector: Any) -> Any:
    return block @ vector
