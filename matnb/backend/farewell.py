"""What a session leaves on a cluster of others when its process dies: its scheduler takes it away."""

from __future__ import annotations

from typing import Any

from distributed import Scheduler, SchedulerPlugin

from matnb.backend.gang_lock import release_turns


class Farewell(SchedulerPlugin):  # type: ignore[misc]  # mypy does not look into distributed
    """Takes a client's worker plugins and turns away once the client is gone, and then itself.

    The scheduler sees a client's connection end when its process does, however that ended.

    Parameters
    ----------
    client
        Its id.
    prefix
        What the names of its worker plugins begin with.
    """

    def __init__(self, client: str, prefix: str) -> None:
        self.name, self._client, self._prefix = f"{prefix}farewell", client, prefix

    def remove_client(self, scheduler: Scheduler, client: str) -> None:
        """Take away what a client left."""
        if client != self._client:
            return
        release_turns(scheduler, lambda holder: holder == client)
        scheduler.remove_plugin(self.name)
        names = [name for name in scheduler.worker_plugins if name.startswith(self._prefix)]
        for name in names:
            del scheduler.worker_plugins[name]  # so that workers to come do not get it
            message: dict[str, Any] = {"op": "plugin-remove", "name": name}
            scheduler.loop.add_callback(scheduler.broadcast, msg=message, on_error="ignore")
