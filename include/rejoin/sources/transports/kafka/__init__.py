"""Topics of Kafka as sources. Begin with ``topic``, the transport; ``offsets`` says what a topic holds, ``reading`` reads ranges of it, ``client`` makes
clients and names their errors; ``wire_format`` and ``schema_registry`` read Avro.
"""
