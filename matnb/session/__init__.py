"""The session: wires recorder, passes, plan, engine and store, and holds them while they live."""

from matnb.session.current import (
    active_session,
    compute,
    connect,
    current_session,
    follow_sessions,
    start,
    stop,
    visualize,
)
from matnb.session.files import load, save
from matnb.session.layouts import align, history, repartition
from matnb.session.memory import memo
from matnb.session.session import Session
from matnb.session.status import Status

__all__ = [
    "Session",
    "Status",
    "active_session",
    "align",
    "compute",
    "connect",
    "current_session",
    "follow_sessions",
    "history",
    "load",
    "memo",
    "repartition",
    "save",
    "start",
    "stop",
    "visualize",
]
