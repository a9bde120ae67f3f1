"""The session: wires recorder, passes, plan, engine and store, and holds them while they live."""

from matnb.session.current import (
    active_session,
    align,
    compute,
    connect,
    current_session,
    follow_sessions,
    repartition,
    start,
    stop,
    visualize,
)
from matnb.session.files import load, save
from matnb.session.history_view import history
from matnb.session.progress_line import progress
from matnb.session.session import Session, Status

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
    "progress",
    "repartition",
    "save",
    "start",
    "stop",
    "visualize",
]
