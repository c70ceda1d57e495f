"""The plan: frozen dataclasses, JSON both ways (``json_form``). Start with ``plan``.

``steps`` is the plan as the steps of a run, ``step_results`` what they come to. ``match``, ``grouping``, ``sources``, ``sinks``, ``expectations``, ``policy``, ``added_columns``
are parts of it. ``problems`` are the codes of mistakes, ``column_names`` the one comparison of names.
"""
