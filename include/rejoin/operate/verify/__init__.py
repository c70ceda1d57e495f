"""Is every output what its SQL says? ``verify`` compares; ``recomputation``, ``plain_reader`` and ``settled_results`` read by another way than a run reads."""
