"""Errors that were not raised on purpose become errors of ours: ``engine_errors`` (expressions, engines), ``stores`` (object stores), ``extras``
(packages that are not installed).
"""
