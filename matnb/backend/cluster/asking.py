"""Requests to one worker, with a time limit: the worker may be silent or gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from distributed import Client


async def answers_of(
    client: Client, address: str, seconds: float | None, work: Callable[..., Any], *arguments: object
) -> list[Any]:
    """Return what a function gives on a worker, or the error that it raises there, as the only element.

    There is none where the worker is gone, or silent for so many seconds.
    """
    asking = client.run(work, *arguments, workers=[address], on_error="return")
    try:
        return list((await asyncio.wait_for(asking, seconds)).values())
    except (OSError, KeyError):  # nobody there, or not in time
        return []
