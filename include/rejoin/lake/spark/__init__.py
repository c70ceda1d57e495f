"""Spark's sessions: ``session`` has all settings, ``jvm`` starts it, ``remote_session`` is Connect, ``setup_check`` Java and jars,
``expression_analysis`` asks Spark about an expression.
"""
