"""``rejoin why``: which records, by which path, made, changed, withheld or removed a row.

``model`` says what an answer is, ``judge`` concludes what the stored rows imply, ``trace`` reads them, ``show`` prints. Never Spark: what only
an evaluation of the user's SQL could tell is said to be not known.
"""
