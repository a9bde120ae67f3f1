"""The session: wires recorder, passes, plan, engine and store, and holds them while they live."""

from matnb.session.current import (
    active_session,
    compute,
    connect,
    current_session,
    start,
    stop,
    visualize,
)
from matnb.session.files import load, save
from matnb.session.memory import memo
from matnb.session.session import Session, Status

__all__ = [
    "Session",
    "Status",
    "active_session",
    "compute",
    "connect",
    "current_session",
    "load",
    "memo",
    "save",
    "start",
    "stop",
    "visualize",
]
