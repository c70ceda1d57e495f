"""Is every output what its SQL says? ``verify`` asks for each, ``comparison`` counts; ``recomputation``, the readers and the other modules read by another way than a run reads."""
