"""Refuses, as `make bench` begins, a machine that others use: its figures could not be believed."""

from __future__ import annotations

from harness.machine import refuse_busy

if __name__ == "__main__":
    refuse_busy()
