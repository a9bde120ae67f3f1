"""What pandas and polars call what a table has under another name, and what to write instead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from matnb.errors import no_attribute, suggestion


def _ways(ways: Mapping[str, str]) -> dict[str, str]:
    return {name: f"write {way}" for names, way in ways.items() for name in names.split()}


OF_TABLES = _ways(
    {
        "info schema": "t.dtypes, or t.describe() for counts and quartiles",
        "isna isnull is_null": "t.missing(columns), a mask of rows",
        "iloc loc row rows": "t[mask], t[start:stop] or t.head(n)",
        "query filter where": 't[t["fare"] > 5]',
        "assign insert with_column": "t.with_columns(name=values)",
        "select": 't[["zone", "fare"]]', "drop": "t[[...]] with the names of the columns to keep",
        "rename": "mn.table({new_name: t[old_name], ...})",
        "drop_nulls": "t.dropna(columns)", "pivot_table crosstab": "t.pivot(rows, columns, values)",
        "to_numpy": "t.to_matrix(columns) or np.asarray(t)", "to_dict": "t.to_pandas().to_dict()",
        "to_parquet write_parquet to_csv write_csv": "mn.save(t, path)",
        "corr": "np.corrcoef(t.to_matrix(columns), rowvar=False)", "group_by": "t.groupby(columns)",
        "sort": "t.sort_values(columns, ascending=False)", "top_k": "t.nlargest(n, columns)",
        "bottom_k": "t.nsmallest(n, columns)", "append extend vstack": "mn.concat([t, u])",
        "join": 't.merge(other, on="zone", how="left")',
        "plot hist": 'mn.plot(t["fare"])', "compute": "t.to_pandas()",
        "mean sum std min max median": 't["fare"].mean(), or t.describe()',
    }
)  # fmt: skip

_ELSEWHERE = "sort_index apply map melt stack drop_duplicates unique sample"
OF_TABLES |= dict.fromkeys(
    _ELSEWHERE.split(), "do it in pandas or polars, from t.to_pandas() or t.to_polars(), then mn.table(frame)"
)

OF_COLUMNS = _ways(
    {
        "dt": "x.hour, x.day and so on", "str": "x == text or x.isin(texts), or compute first: np.asarray(x)",
        "unique categories": "x.value_counts()", "isnull is_null": "x.isna()", "notna notnull": "~x.isna()",
        "to_numpy values tolist to_list": "np.asarray(x)", "head": "x[:5]", "tail": "x[-5:]",
        "floor": "x.truncate(unit)", "astype cast": "x.to_float(), or x.fillna(0) for an array of integers",
        "fill_null": "x.fillna(value)", "dropna drop_nulls": "x.present()",
        "tz_convert tz tz_localize": "x.to_zone(name), and x.to_zone(None) for times of its clocks",
    }
)  # fmt: skip

OF_GROUPS = _ways(
    {
        "agg aggregate apply": 'groups["tip"].mean(), a method at a time',
        "value_counts": "groups.size()",
    }
)  # fmt: skip


def no_table_name(
    owner: str, name: str, ways: Mapping[str, str], known: Callable[[], Iterable[str]]
) -> AttributeError:
    """Return the error for an attribute that a table, a column or groups lack, with what to write instead."""

    def instead() -> str:
        return ways.get(name) or suggestion(name, known())

    return no_attribute(owner, name, instead=instead)
