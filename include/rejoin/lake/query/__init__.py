"""What people, pages and commands ask of a lake, without Spark.

``point_query`` one key or one run; ``user_queries`` SQL over ``visible_tables`` in a ``sandbox``; ``bounded_looks`` sizes and samples; ``quarantine_reader``
and ``quarantine_entries`` what is kept aside; ``key_values`` and ``typed_keys`` keys as people type them; ``json_values``, ``arrow_values`` and ``export``
answers as text and files.
"""
