"""ingest: events and stored versions become new versions of a source table.

``step`` does it; ``statements``, ``stream_records`` and ``held_versions`` are its SQL, ``fates`` what can become of a record. ``record_checks`` and ``column_drift``
are the policies on input, ``new_versions`` judges and writes what it comes to, ``raw_records`` finds texts again.
"""
