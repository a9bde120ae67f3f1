"""Tasks on one worker: the executor, its memory, and the threads that share the tasks."""
