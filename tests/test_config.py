"""Settings: sizes, truth values, every variable of the environment, and what is said about wrong ones."""

from __future__ import annotations

import pytest

import matnb as mn
from matnb.config import Config, config_from_environment, display_from_environment, parse_bytes
from matnb.errors import OptionError
from matnb.session.settings import rebalancing_from


@pytest.mark.parametrize(
    ("text", "num_bytes"),
    [
        ("0", 0), ("17", 17), ("17B", 17), ("4GB", 4 * 10**9), ("4gb", 4 * 10**9), ("1.5 kB", 1500),
        (" 2 TiB ", 2 * 2**40), (".5MiB", 2**19), ("512 MiB", 512 * 2**20), ("3KiB", 3072), (".1 MB", 10**5),
        (8, 8), (2.5e3, 2500), (0, 0),
    ],
)  # fmt: skip
def test_sizes(text, num_bytes):
    assert parse_bytes(text) == num_bytes
    assert isinstance(parse_bytes(text), int)


@pytest.mark.parametrize(
    "text",
    ["", "GB", "4 XB", "-1", "4GB 2MB", "1e9", "four", -1, float("inf"), float("nan"), True, False],
)
def test_what_is_no_size_is_refused_under_the_name_of_its_option(text):
    with pytest.raises(OptionError, match=r"^memo="):
        parse_bytes(text, "memo")


@pytest.mark.parametrize(
    ("variable", "text", "field", "value"),
    [
        ("MATNB_WORKERS", "3", "workers", 3),
        ("MATNB_THREADS", "2", "threads", 2),
        ("MATNB_PROCESSES", "true", "processes", True),
        ("MATNB_SECURITY", "off", "security", False),
        ("MATNB_MEMORY_LIMIT", "2GB", "memory_limit_bytes", 2 * 10**9),
        ("MATNB_MEMO", "1 MiB", "memo_bytes", 2**20),
        ("MATNB_MEMO", "Off", "remembers", False),
        ("MATNB_MEMO_DIR", "kept/results", "memo_dir", "kept/results"),
        ("MATNB_COMPUTE_LIMIT", "5kB", "compute_limit_bytes", 5000),
        ("MATNB_ENGINE", "interpret", "engine", "interpret"),
        ("MATNB_REBALANCE", "entries", "rebalance", "entries"),
        ("MATNB_REBALANCE", "traces/one.json", "rebalance", "traces/one.json"),
    ],
)
def test_every_variable_changes_its_setting_alone(variable, text, field, value):
    changed = config_from_environment({variable: text})
    assert changed == Config(**{field: value})
    assert changed != Config()
    assert config_from_environment({variable: "auto"}) == Config()


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("1", True), ("true", True), ("Yes", True), (" ON ", True),
        ("0", False), ("False", False), ("no", False), ("off", False),
    ],
)  # fmt: skip
def test_truth_values(text, truth):
    assert config_from_environment({"MATNB_PROCESSES": text}).processes is truth


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("MATNB_WORKERS", "two"), ("MATNB_WORKERS", "0"), ("MATNB_WORKERS", "-1"), ("MATNB_WORKERS", "1.5"),
        ("MATNB_THREADS", "0"), ("MATNB_THREADS", "x"), ("MATNB_PROCESSES", "maybe"),
        ("MATNB_MEMORY_LIMIT", "much"), ("MATNB_MEMO", "-1"), ("MATNB_MEMO_DIR", " "),
        ("MATNB_COMPUTE_LIMIT", "2 XB"),
        ("MATNB_ENGINE", "spark"),
    ],
)  # fmt: skip
def test_a_bad_value_is_refused_under_the_name_of_its_variable(variable, text):
    with pytest.raises(OptionError, match=f"^{variable}[=:]") as caught:
        config_from_environment({variable: text})
    assert repr(text) in str(caught.value) or f"={text}:" in str(caught.value)


@pytest.mark.parametrize("variable", ["MATNB_COLOUR", "MATNB_", "MATNB_CORES"])
def test_an_unknown_variable_is_refused_with_those_there_are(variable):
    with pytest.raises(OptionError, match=f"^{variable}='4': there is no such setting") as caught:
        config_from_environment({"MATNB_WORKERS": "2", variable: "4"})
    for known in (
        "WORKERS",
        "THREADS",
        "PROCESSES",
        "SECURITY",
        "MEMORY_LIMIT",
        "MEMO",
        "COMPUTE_LIMIT",
        "ENGINE",
        "DISPLAY",
    ):
        assert f"MATNB_{known}" in str(caught.value)


@pytest.mark.parametrize("variable", ["MATNB_WORKRES", "MATNB_workers", "MATNB_WORKER"])
def test_an_unknown_variable_that_is_near_another_is_told_so(variable):
    with pytest.raises(OptionError, match=r"there is no such setting; did you mean MATNB_WORKERS\?$"):
        config_from_environment({variable: "4"})


def test_variables_of_others_are_let_be():
    environ = {
        "MATNB_DISPLAY": "live",
        "MATNB_CHROMIUM": "/bin/x",
        "MATNB_TEST_DATA": "/data",
        "WORKERS": "4",
    }
    assert config_from_environment(environ) == Config()


def test_a_session_starts_with_what_the_environment_says_and_with_what_it_is_given(monkeypatch):
    monkeypatch.setenv("MATNB_THREADS", "1")
    monkeypatch.setenv("MATNB_MEMO", "3MB")
    with mn.start(memo="auto") as session:
        assert (session.config.threads, session.config.memo_bytes) == (1, 3 * 10**6)
    with mn.start(memo="2MB") as session:
        assert session.config.memo_bytes == 2 * 10**6
    monkeypatch.setenv("MATNB_WORKRES", "4")
    with pytest.raises(OptionError, match="MATNB_WORKRES"):
        mn.start()
    assert mn.active_session() is None


@pytest.mark.parametrize(
    "wrong",
    [{"workers": 0}, {"workers": True}, {"workers": 1.0}, {"threads": 0}, {"threads": True}, {"engine": "x"}],
)
def test_a_config_that_cannot_be_is_refused(wrong):
    (name,) = wrong
    with pytest.raises(OptionError, match=f"^{name}="):
        Config(**wrong)


def test_what_cells_show():
    assert display_from_environment({}) == "auto"
    assert display_from_environment({"MATNB_DISPLAY": "static"}) == "static"
    with pytest.raises(OptionError, match=r"^MATNB_DISPLAY='loud': choose one of 'auto', 'live', 'static'"):
        display_from_environment({"MATNB_DISPLAY": "loud"})


def test_limits_under_which_nothing_could_run_are_refused():
    with pytest.raises(OptionError, match="at least 64MB"):
        Config(memory_limit_bytes=1)
    with pytest.raises(OptionError, match="compute_limit"):
        Config(compute_limit_bytes=0)


def test_who_rebalances_is_one_of_a_few_names_or_a_file():
    with pytest.raises(OptionError, match=r"^MATNB_REBALANCE: rebalance='often': give the path of a trace"):
        config_from_environment({"MATNB_REBALANCE": "often"})
    for wrong in (3, None, object(), "often"):
        with pytest.raises(OptionError, match=r"rebalance="):
            rebalancing_from(wrong)
    assert rebalancing_from(" Presto ").name == "presto"
    assert rebalancing_from("off").is_off
    with pytest.raises(OptionError, match="there-is-none"):
        rebalancing_from("there-is-none.json")


def test_an_empty_variable_is_as_good_as_none() -> None:
    names = ("WORKERS", "PROCESSES", "MEMO", "COMPUTE_LIMIT", "REBALANCE")
    assert config_from_environment({f"MATNB_{name}": "" for name in names}) == config_from_environment({})
