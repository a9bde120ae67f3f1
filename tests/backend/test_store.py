"""The store: arrays go with their handles, with their workers, and by the budget, cheapest first."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from matnb.backend.store import Entry, Store
from matnb.blocks.grid import regular
from matnb.blocks.layout import Layout
from matnb.expr.nodes import Data, Expr, Transpose
from matnb.program.plan import StoredArray

FLOAT = np.dtype(np.float64)


class Held:
    """Stands for a future, which the store keeps and never looks into."""


def node(name: str) -> Expr:
    return Data(name.encode(), (4, 4), FLOAT, False)


def entry(num_bytes: int = 100, seconds: float = 1.0, owners: tuple[int, ...] = (0, 1)) -> Entry:
    layout = Layout(regular((4, 4), (len(owners), 1)), owners)
    sizes = (num_bytes, *[0] * (len(owners) - 1))
    stored = StoredArray(
        layout, tuple(f"k{number}" for number in range(len(owners))), (1,) * len(owners), sizes
    )
    return Entry(stored, tuple(Held() for _ in owners), seconds)  # type: ignore[arg-type]


def names(store: Store, *nodes: Expr) -> list[bool]:
    return [store.entry(one) is not None for one in nodes]


def test_what_is_added_is_found_under_equal_expressions():
    store, one = Store(), entry()
    store.add(node("a"), one)
    assert store.entry(node("a")) is one
    assert store.find([node("a"), node("b")]) == {node("a"): one.stored}
    assert store.entries() == (one,)
    assert node("a") in store
    assert node("b") not in store
    assert store.entry(node("b")) is None


def test_bytes_of_an_array_with_two_names_count_once():
    store, one = Store(), entry(num_bytes=300)
    store.add(node("recorded"), one)
    store.add(node("optimized"), one)
    store.add(node("other"), entry(num_bytes=50))
    assert store.num_bytes == 350
    assert len(store.entries()) == 2
    assert store.bytes_by_owner() == {0: 350, 1: 0}


def test_within_the_budget_nothing_goes():
    store = Store()
    store.add(node("a"), entry(100))
    store.add(node("b"), entry(100))
    store.trim(200)
    assert names(store, node("a"), node("b")) == [True, True]


def test_no_more_goes_than_what_is_over_the_budget():
    store = Store()
    quick, slow = node("quick"), node("slow")
    store.add(quick, entry(100, seconds=1.0))
    store.add(slow, entry(200, seconds=5.0))
    store.trim(200)  # without the first the rest is the budget to the byte
    assert names(store, quick, slow) == [False, True]


def test_the_least_seconds_for_a_byte_go_first():
    store = Store()
    slow, quick, large = node("slow"), node("quick"), node("large")
    store.add(slow, entry(100, seconds=5.0))
    store.add(quick, entry(100, seconds=0.1))  # 1 ms a byte
    store.add(large, entry(200, seconds=0.1))  # 0.5 ms a byte
    store.trim(250)
    assert names(store, slow, quick, large) == [True, True, False]
    store.trim(150)
    assert names(store, slow, quick, large) == [True, False, False]
    assert store.num_bytes == 100


def test_what_a_person_keeps_does_not_go():
    store = Store()
    kept, other = node("kept"), node("other")
    store.add(kept, entry(100, seconds=0.0))
    store.add(other, entry(100, seconds=9.0))
    store.pin(kept)
    store.pin(node("nowhere"))
    store.trim(50)
    assert names(store, kept, other) == [True, False]
    store.drop_owner(0)
    store.add(kept, entry(100, seconds=0.0))  # made again after a loss
    store.trim(50)
    assert names(store, kept) == [True]


def test_what_was_given_stays_while_an_expression_needs_it():
    store = Store()
    given = node("given")
    user = Transpose(given, (1, 0))
    store.add_given(given, entry())
    store.retain(())
    store.trim(0)
    assert names(store, given) == [True]
    del given
    gc.collect()
    assert len(store.entries()) == 1
    del user
    gc.collect()
    assert not store.entries()


def test_an_array_goes_under_all_its_names():
    store, one = Store(), entry()
    store.add(node("recorded"), one)
    store.add(node("optimized"), one)
    store.trim(0)
    assert not store.entries()
    assert store.num_bytes == 0


def test_an_array_of_no_bytes_can_be_weighed():
    store = Store()
    store.add(node("empty"), entry(0, seconds=0.0))
    store.add(node("a"), entry(100))
    store.trim(50)
    assert not names(store, node("a"))[0]


def test_arrays_stay_with_their_handles():
    store = Store()
    live, gone, owner = node("live"), node("gone"), node("owner")
    flipped = Transpose(owner, (1, 0))
    store.add(live, entry())
    store.add(gone, entry())
    store.add(flipped, entry(), owner)
    store.retain({live, owner})
    assert names(store, live, gone, flipped) == [True, False, True]
    store.retain({flipped})
    assert names(store, live, gone, flipped) == [False, False, True]
    store.retain(())
    assert not store.entries()


def test_a_lost_worker_takes_every_array_it_had_a_block_of():
    store = Store()
    both, zero, one = node("both"), node("zero"), node("one")
    store.add(both, entry(owners=(0, 1)))
    store.add(zero, entry(owners=(0, 0)))
    store.add(one, entry(owners=(1,)))
    store.drop_owner(1)
    assert names(store, both, zero, one) == [False, True, False]
    store.drop_owner(7)
    assert names(store, zero) == [True]


def test_nothing_holds_the_futures_of_what_is_gone():
    store = Store()
    one, other = entry(100, seconds=0.1), entry(100, seconds=5.0)
    futures = [weakref.ref(future) for held in (one, other) for future in held.futures]
    store.add(node("one"), one)
    store.add(node("other"), other)
    store.trim(100)
    del one
    gc.collect()
    assert [future() is None for future in futures] == [True, True, False, False]
    store.clear()
    del other
    gc.collect()
    assert all(future() is None for future in futures)


def test_what_is_remembered_stays_without_a_handle_and_goes_first():
    store = Store()
    held, worth, cheap = node("held"), node("worth"), node("cheap")
    store.add(held, entry(100, seconds=0.1))
    store.add(worth, entry(100, seconds=9.0))
    store.add(cheap, entry(100, seconds=1.0))
    for one in (worth, cheap, node("nowhere")):
        store.remember(one)
    store.retain({held})
    assert names(store, held, worth, cheap) == [True, True, True]
    assert len(store.idle()) == 2
    store.trim(250)
    assert names(store, held, worth, cheap) == [True, True, False]
    store.retain({held, worth})
    assert not store.idle()
    store.forget()
    store.retain({held})
    assert names(store, held, worth) == [True, False]


def test_room_is_made_of_what_has_no_handle_first_and_of_as_little_as_will_do():
    store = Store()
    nodes = [node(name) for name in ("held", "needed", "dear", "worth", "cheap")]
    for one, seconds in zip(nodes, (0.0, 0.1, 5.0, 9.0, 1.0), strict=True):
        store.add(one, entry(100, seconds))
        store.remember(one)
    store.retain({nodes[0], nodes[2]})

    def make_room(most: int) -> dict[int, int]:
        return store.make_room([nodes[1]], lambda held: [0] if held[0] > most else [])

    assert make_room(50)[0] == 100  # all that may go
    assert names(store, *nodes) == [True] * 5  # and none has
    assert make_room(400)[0] == 400
    assert names(store, *nodes) == [True, True, True, True, False]
    assert store.num_gave_way == 0
    assert make_room(210)[0] == 200
    assert names(store, *nodes) == [False, True, True, False, False]
    assert store.num_gave_way == 1


def test_room_is_made_where_it_is_lacking():
    store = Store()
    here, there = node("here"), node("there")
    store.add(here, entry(100, seconds=9.0, owners=(0,)))
    store.add(there, entry(100, seconds=0.0, owners=(1,)))
    store.make_room((), lambda held: [0] if held.get(0, 0) > 50 else [])
    assert names(store, here, there) == [False, True]


def test_what_cannot_be_made_again_never_gives_way():
    store = Store()
    given, copied, varying = node("given"), node("copied"), node("varying")
    varying.__dict__["is_made_anew"] = True
    store.add_given(given, entry())
    store.add_given(copied, entry(), may_go=True)
    store.add(varying, entry())
    store.add(node("pinned"), entry())
    store.pin(node("pinned"))
    store.trim(0)
    assert names(store, given, copied, varying, node("pinned")) == [True, False, True, True]


def test_an_array_of_a_user_that_gave_way_is_known_to_have_until_all_are_dropped():
    store, copied = Store(), node("copied")
    store.add_given(copied, entry(), may_go=True)
    assert not store.gave_way(copied)
    store.trim(100)
    assert not store.gave_way(copied)
    store.make_room((), lambda held: [owner for owner, size in held.items() if size])
    assert names(store, copied) == [False]
    assert (store.num_gave_way, store.gave_way(copied)) == (1, True)
    store.add_given(copied, entry(), may_go=True)
    assert not store.gave_way(copied)
    store.clear()
    assert not store.gave_way(copied)


def test_what_is_given_meanwhile_waits_till_room_is_made():
    # The tables are gone through then, by a thread that must not find them grown.
    store, late = Store(), node("late")
    store.add(node("idle"), entry())
    store.remember(node("idle"))
    store.retain(())
    seen = []

    def lacking(held: object) -> list[int]:
        giving.start()
        giving.join(0.2)
        seen.append(store.entry(late))
        return []

    giving = threading.Thread(target=lambda: store.add_given(late, entry()))
    store.make_room((), lacking)
    giving.join()
    assert seen == [None]
    assert store.entry(late) is not None


def test_an_array_stays_under_its_first_name():
    store, one = Store(), entry()
    made, recorded, other = node("made"), node("recorded"), node("other")
    store.add(made, one)
    store.add(recorded, one, second=True)
    store.add(other, one, second=True)
    store.retain({recorded})
    assert names(store, made, recorded, other) == [True, True, False]
    store.remember(recorded)
    store.retain(())
    assert names(store, made, recorded) == [True, False]
    store.add(recorded, one, second=True)
    store.remember(recorded, by_this_name=True)
    store.retain(())
    assert names(store, made, recorded) == [True, True]


def test_what_is_remembered_keeps_nothing_that_it_was_made_from():
    store = Store()
    given, made = node("given"), Transpose(node("given"), (1, 0))
    store.add(made, entry())
    store.remember(made)
    gone = weakref.ref(given)
    del given, made
    store.retain(())
    gc.collect()
    assert gone() is None
    assert names(store, Transpose(node("given"), (1, 0))) == [True]


def test_there_are_not_many_arrays_without_a_handle(monkeypatch):
    monkeypatch.setattr("matnb.backend.store.MOST_IDLE", 3)
    store, nodes = Store(), [node(str(number)) for number in range(6)]
    for one in nodes:
        store.add(one, entry())
        store.remember(one)
    store.remember(nodes[1])  # used again
    store.retain({nodes[5]})
    assert names(store, *nodes) == [False, True, False, True, True, True]


PLACES = st.integers(0, 5)
ACTIONS = st.one_of(
    st.tuples(st.just("add"), PLACES, PLACES, PLACES, st.booleans()),
    st.tuples(st.just("remember"), PLACES, st.booleans()),
    st.tuples(st.just("retain"), st.sets(PLACES)),
    st.tuples(st.just("replace"), PLACES),
    st.tuples(st.just("lose"), st.integers(0, 2)),
    st.tuples(st.just("trim"), st.integers(0, 600)),
    st.tuples(st.just("forget")),
)


def staying(store: Store, live: set[bytes]) -> set[bytes]:
    """Return the names that stay when handles stand for these, by what `retain` promises."""
    kept, remembered = store._kept, store._remembered
    handled = {one.entry for name, one in kept.items() if name in live or one.owner in live}
    stay = handled | {one.entry for name, one in kept.items() if name in remembered}
    return {
        name
        for name, one in kept.items()
        if one.entry in stay and (not one.second or one.owner in live or name in live or name in remembered)
    }


@given(st.lists(ACTIONS, max_size=25))
def test_bytes_and_what_stays_are_those_of_all_arrays_whatever_came_before(actions):
    store, nodes = Store(), [node(str(number)) for number in range(6)]
    entries = [entry(100 * (number + 1), owners=(number % 3,)) for number in range(6)]
    for action in actions:
        match action:
            case "add", place, which, owner, second:
                store.add(nodes[place], entries[which], nodes[owner], second)
            case "remember", place, by_this_name:
                store.remember(nodes[place], by_this_name)
            case "retain", places:
                expected = staying(store, {nodes[place].digest for place in places})
                store.retain([nodes[place] for place in places])
                assert set(store.digests()) == expected
                assert set(store._remembered) <= expected
            case "replace", which:
                new = entry(50 * (which + 1), owners=((which + 1) % 3,))
                store.replace(entries[which], new)
                entries[which] = new
            case "lose", owner:
                store.drop_owner(owner)
            case "trim", budget:
                store.trim(budget)
            case ("forget",):
                store.forget()
        there = store.entries()
        assert store.num_bytes == sum(one.num_bytes for one in there)
        held = dict.fromkeys(range(3), 0)
        for one in there:
            held[one.stored.layout.owners[0]] += one.num_bytes
        assert {owner: size for owner, size in held.items() if size} == {
            owner: size for owner, size in store.bytes_by_owner().items() if size
        }
