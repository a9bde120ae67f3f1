"""Functions called for parts of arrays, as in the Presto system: ``mn.splits`` and ``mn.foreach``."""
