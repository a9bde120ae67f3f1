"""Schedules of faults: programs with their answers, faults at named points, and whoever watches over both."""
