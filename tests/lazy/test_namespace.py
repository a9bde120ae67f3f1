"""``matnb`` as an array namespace: its names, what it tells of itself, what handles have of the standard."""

from __future__ import annotations

import builtins
import copy
import io
import pickle

import numpy as np
import pytest

import matnb as mn

pytestmark = pytest.mark.session("interpreter")


def test_names_are_listed_and_resolve() -> None:
    assert set(mn.__all__) <= set(dir(mn))
    assert len(set(mn.__all__)) == len(mn.__all__)
    assert all(hasattr(mn, name) for name in mn.__all__)
    assert mn.load is not np.load
    with pytest.raises(AttributeError, match=r"no attribute 'busday_count'.*coverage"):
        mn.busday_count  # noqa: B018  asked for
    assert not hasattr(mn, "fft")


def test_what_works_on_no_array_is_numpys() -> None:
    assert mn.float32 is np.float32
    assert mn.bool is np.bool
    assert mn.pi == np.pi
    assert mn.nan != mn.nan
    assert mn.newaxis is None
    assert mn.errstate is np.errstate
    with mn.printoptions(precision=2):
        assert np.get_printoptions()["precision"] == 2
    mn.testing.assert_allclose(mn.arange(3), [0, 1, 2])
    assert isinstance(mn.ones(2), mn.ndarray)


def test_functions_take_lists_and_numbers() -> None:
    assert isinstance(mn.add(2, [1.0]), mn.DistArray)
    assert isinstance(mn.sin(np.ones(3)), mn.DistArray)
    assert isinstance(mn.sum([1, 2]), mn.DistArray)
    assert isinstance(mn.multiply.outer([1, 2], [3]), mn.DistArray)
    assert type(mn.sqrt(4.0)) is np.float64  # of numbers alone NumPy's
    assert mn.add.identity == 0
    assert pickle.loads(pickle.dumps(mn.acos)) is mn.arccos


def test_the_namespace_of_a_handle() -> None:
    x = mn.ones((2, 3))
    assert x.__array_namespace__() is mn
    assert x.__array_namespace__(api_version="2024.12") is mn
    with pytest.raises(ValueError, match="1999"):
        x.__array_namespace__(api_version="1999")
    assert mn.__array_api_version__ == "2024.12"


def test_what_the_namespace_tells_of_itself() -> None:
    info = mn.__array_namespace_info__()
    assert info.capabilities()["boolean indexing"]
    assert info.default_device() in info.devices()
    assert info.default_dtypes()["real floating"] == mn.zeros(1).dtype
    assert info.default_dtypes()["integral"] == mn.arange(3).dtype
    assert set(info.dtypes(kind="integral")) == {
        f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
    }
    assert set(info.dtypes(kind=("bool", "complex floating"))) == {"bool", "complex64", "complex128"}
    assert all(hasattr(mn, name) for name in info.dtypes())
    with pytest.raises(ValueError, match="no such"):
        info.dtypes(kind="no such")
    with pytest.raises(ValueError, match="cpu"):
        info.dtypes(device="gpu")


def test_devices_and_dlpack() -> None:
    x = mn.arange(6.0).reshape(2, 3)
    assert x.device == "cpu"
    assert x.to_device("cpu") is x
    assert x.__dlpack_device__() == np.ones(1).__dlpack_device__()
    np.testing.assert_array_equal(np.from_dlpack(x), np.arange(6.0).reshape(2, 3))
    y = mn.from_dlpack(np.ones(2))
    assert (y == 1).all()
    for refused in (
        lambda: x.to_device("gpu"),
        lambda: mn.zeros(2, device="gpu"),
        lambda: mn.asarray(np.ones(2), copy=False),
        lambda: mn.from_dlpack(np.ones(2), copy=False),
        lambda: np.from_dlpack(x, copy=False),
    ):
        with pytest.raises((ValueError, TypeError)):
            refused()


def test_limits_of_dtypes() -> None:
    limits = mn.finfo(mn.ones(1, dtype=mn.float32))
    assert (limits.bits, limits.dtype) == (32, np.float32)
    assert type(limits.eps) is builtins.float
    assert limits.max == float(np.finfo(np.float32).max)
    assert mn.finfo(mn.complex128).eps == np.finfo(float).eps
    assert mn.iinfo(mn.arange(2)).max == 2**63 - 1
    assert mn.can_cast(mn.ones(1, dtype="int8"), mn.int16)
    assert mn.result_type(mn.ones(1, dtype="float32"), 1.0) == mn.float32
    for refused in (lambda: mn.finfo(int), lambda: mn.result_type(mn.ones(1), "text")):
        with pytest.raises(TypeError):
            refused()


def test_a_copy_is_another_handle() -> None:
    x = mn.zeros(3)
    same, other, third = mn.asarray(x), mn.array(x), copy.copy(x)
    same[0] = 1
    other[1] = 1
    third[2] = 1
    assert x.tolist() == [1, 0, 0]


def test_complex_to_real_warns_as_numpy_does() -> None:
    x = mn.asarray([1 + 2j, 0j])
    with pytest.warns(np.exceptions.ComplexWarning, match="imaginary"):
        y = x.astype(float)
    assert y.tolist() == [1, 0]
    assert x.astype(bool).tolist() == [True, False]


def test_numbers_that_do_not_fit_overflow() -> None:
    x = mn.ones(3, dtype=mn.int8)
    for refused in (
        lambda: x + 300,
        lambda: mn.full(2, 300, dtype="int8"),
        lambda: mn.asarray([300], dtype="int8"),
        lambda: mn.clip(x, 300, None),
    ):
        with pytest.raises(OverflowError, match="int8"):
            refused()
    assert mn.where(x > 0, 300, x).tolist() == [44, 44, 44]  # copied, not computed with: as in NumPy


def test_reading_and_arrays_of_handles() -> None:
    assert mn.loadtxt(io.StringIO("1 2\n3 4")).tolist() == [[1, 2], [3, 4]]
    x = mn.arange(4.0)
    assert np.asarray(mn.asarray([x.sum(), x.max()])).tolist() == [6, 3]
    assert mn.asarray([[x, x]]).shape == (1, 2, 4)
    assert x.tolist() == [0, 1, 2, 3]
    assert mn.asarray(5).tolist() == 5


def test_sorting_in_place_changes_the_handle() -> None:
    x = mn.asarray([3, 1, 2])
    y = x[:]
    x.sort()
    assert x.tolist() == [1, 2, 3]
    assert y.tolist() == [3, 1, 2]
    y.partition(0)
    assert y.tolist()[0] == 1


def test_attributes_that_are_not_there_say_what_to_do() -> None:
    x = mn.ones(2)
    assert not hasattr(x, "strides")
    with pytest.raises(AttributeError, match=r"compute\(\)\.strides"):
        x.strides  # noqa: B018  asked for
