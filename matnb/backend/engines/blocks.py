"""Blocks on the workers: sent there, fetched, and given names without a history."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

from distributed import Client, Future

from matnb.backend.cluster.connection import BROKEN
from matnb.backend.cluster.dask_cluster import DaskCluster
from matnb.backend.engines.futures import Answers, OwnersLost
from matnb.backend.kept import BlockRef, LocalBlock, names_of
from matnb.backend.tasks import worker
from matnb.blocks.formats import Block, freeze
from matnb.blocks.grid import Region
from matnb.blocks.layout import Layout
from matnb.expr.client_data import held
from matnb.ops.creation import part_of, piece_of, pieces_of
from matnb.program.plan import Shipment, Slot, StoredArray

_ANSWER_SECONDS = 10.0


class WorkerBlocks:
    """Blocks on the workers of a cluster.

    Dask's names of values do not repeat: a name that is used again while its last use is being forgotten
    makes the scheduler lose the new one (its update of the graph is not atomic).

    Parameters
    ----------
    cluster
        Where they are.
    prefix
        Put before every name, so that two sessions on one cluster do not meet.
    numbers
        Of runs and of what is sent; no two are the same.
    """

    def __init__(self, cluster: DaskCluster, prefix: str, numbers: Iterator[int]) -> None:
        self._cluster, self._client, self._answers = cluster, cluster.client, Answers(cluster)
        self._prefix, self._numbers = prefix, numbers
        self._by_reference = cluster.in_process  # and Dask is not told

    def gather(self, futures: Sequence[BlockRef], owners: Sequence[int]) -> list[Block]:
        """Return blocks in this process, which nobody writes to: copies of those of other processes.

        Raises
        ------
        OwnersLost
            When a worker that held one died.
        """
        blocks: list[Block] = self._answers.bring(futures, owners)
        return blocks

    def ship(self, blocks: Mapping[Slot, Block], owner: int) -> dict[Slot, BlockRef]:
        """Send blocks to a worker, and return what keeps them there."""
        base = f"{self._prefix}s{next(self._numbers)}"
        if self._by_reference:
            return {key: LocalBlock(f"{base}-{key}", freeze(block)) for key, block in blocks.items()}
        names = {key: f"{base}-{key}" for key in blocks}
        named = {names[key]: freeze(block) for key, block in blocks.items()}
        address = self._cluster.workers[owner].address
        sending = self._client.scatter(named, workers=[address], hash=False, asynchronous=True)
        try:
            sent = self._answers.waited_for(sending, [owner])
        except KeyError as error:  # it names a worker that is gone
            raise self._answers.broken(error, [owner]) from error
        return {key: sent[name] for key, name in names.items()}

    def send(
        self,
        shipments: Sequence[Shipment],
        sent: dict[Slot, BlockRef],
        counts: dict[Slot, tuple[int, int]],
    ) -> None:
        """Send the data of a user that a plan reads, and note what keeps it, and its entries and bytes."""
        by_owner: dict[int, dict[Slot, Block]] = {}
        for expression, alike in itertools.groupby(shipments, lambda one: one.expression):
            block = held(expression)
            assert block is not None, "a plan ships what is held here"
            some = list(alike)
            for one, piece in zip(some, self._pieces(block, [one.region for one in some]), strict=True):
                by_owner.setdefault(one.owner, {})[one.key] = piece
                counts[one.key] = (piece.nnz, piece.nbytes)
        for owner, blocks in by_owner.items():
            sent.update(self.ship(blocks, owner))

    def ship_array(
        self, block: Block, layout: Layout, is_constant: bool = False
    ) -> tuple[StoredArray, tuple[BlockRef, ...]]:
        """Send a user's array to the owners of a layout.

        Of an array that nobody ever writes to, which ``is_constant``, workers in this process get no copy.
        """
        futures: list[BlockRef] = []
        counts: list[tuple[int, int]] = []
        regions = list(layout.grid.regions())
        pieces = (part_of(block, one) for one in regions) if is_constant else self._pieces(block, regions)
        for number, (piece, owner) in enumerate(zip(pieces, layout.owners, strict=True)):
            futures.extend(self.ship({number: piece}, owner).values())
            counts.append((piece.nnz, piece.nbytes))
        nnz, sizes = tuple(nnz for nnz, _ in counts), tuple(size for _, size in counts)
        return StoredArray(layout, names_of(futures), nnz, sizes), tuple(futures)

    def _pieces(self, block: Block, regions: Sequence[Region]) -> Iterable[Block]:
        # What goes to another process is copied there one after the other.
        return pieces_of(block, regions) if self._by_reference else (piece_of(block, one) for one in regions)

    def cut_lineage(self, owners: Sequence[int], futures: Sequence[BlockRef]) -> tuple[BlockRef, ...]:
        """Give blocks names without a history, since Dask keeps every task that a block came from.

        Parameters
        ----------
        owners, futures
            Of each block: the worker that has it, and what keeps it now; one that is held by reference has
            no history.
        """
        known = [(owner, one) for owner, one in zip(owners, futures, strict=True) if isinstance(one, Future)]
        if not known:
            return tuple(futures)
        new = iter(self._renamed([owner for owner, _ in known], [one for _, one in known]))
        return tuple(next(new) if isinstance(one, Future) else one for one in futures)

    def _renamed(self, owners: Sequence[int], futures: Sequence[Future]) -> tuple[Future, ...]:
        self._answers.finished(futures, owners)
        run_id = f"{self._prefix}h{next(self._numbers)}"
        places = {future.key: owner for future, owner in zip(futures, owners, strict=True)}
        new_names = {name: f"{run_id}-{number}" for number, name in enumerate(places)}
        by_owner: dict[int, list[str]] = {}
        for name, owner in places.items():
            by_owner.setdefault(owner, []).append(name)
        who_has: dict[str, list[str]] = {}
        num_bytes: dict[str, int] = {}
        for owner, own in by_owner.items():
            address = self._cluster.workers[owner].address
            names = {name: new_names[name] for name in own}
            try:
                answer = self._answers.waited_for(_renamed(self._client, names, address), [owner])
            except (KeyError, ValueError) as error:  # a KeyError names a worker that is gone
                raise self._answers.broken(error, [owner]) from error
            if len(answer) != len(names):
                raise OwnersLost([owner])
            num_bytes.update(answer)
            who_has.update({name: [address] for name in answer})
        try:
            self._client.sync(
                self._client.scheduler.update_data,
                who_has=who_has,
                nbytes=num_bytes,
                client=self._client.id,
                callback_timeout=_ANSWER_SECONDS,
            )
        except BROKEN as error:
            raise self._answers.broken(error, by_owner) from error
        return tuple(self._answers.future(new_names[future.key]) for future in futures)


async def _renamed(client: Client, names: dict[str, str], address: str) -> dict[str, int]:
    (answer,) = (await client.run(worker.rename, names, workers=[address])).values()
    return dict(answer)
