"""The kinds of joins, a folder each: ``statements``, and ``changes``, which says what of the result the changes of a run can change.

``registry`` lists the kinds; ``kind`` says what a kind has to offer; ``sides`` and ``time_spans`` are shared. ``foreign_key`` is the star of tables by
foreign keys, ``outer`` what right and full foreign-key joins add to it, ``same_key`` two tables by their primary keys, ``as_of`` a stream with a table,
``window`` two streams, ``group`` groups of one table. Knows the lake (lookups) and engines; steps call it.
"""
