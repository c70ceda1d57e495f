"""The run that orders the steps. ``topology`` opens, cuts, publishes and rolls forward; ``schedule`` does a whole run in one process, ``job`` one step.

``opening`` refuses what a topology may not become, ``lease`` holds a run, ``idle_steps`` registers what has nothing to do. ``attempt`` is one try of a step,
done where it belongs by ``placed_step`` or as a ``spark_task``, by its ``step_size``. ``self_check`` is what every run checks of itself, ``mend`` repairs what
earlier versions stored.
"""
