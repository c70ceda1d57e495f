"""Bytes as records: CSV (``csv_text``), JSON (``json_text``), and lines (``line_chunks``, ``line_tally``). What is written otherwise becomes lines of JSON first:
``json_documents``, ``binary_documents`` (Avro, Parquet), ``key_lines``.
"""
