"""Bytes as records: CSV (``csv_text``), JSON (``json_text``), and lines (``line_chunks``, ``line_tally``)."""
