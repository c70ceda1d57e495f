"""``rejoin why``: which records, by which path, made, changed, withheld or removed a row. Start with ``trace``. Reads, never runs."""
