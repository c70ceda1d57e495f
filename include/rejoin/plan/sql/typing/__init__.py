"""The types of SQL expressions by Spark 4.1's rules (ANSI mode, UTC), without Spark.

``lexer`` and ``grammar`` read a text, ``coercion`` says what converts to what, ``table`` holds the functions, ``constants``
judges literals, ``check`` puts them together. What none of them knows is unknown, and left to Spark.
"""
