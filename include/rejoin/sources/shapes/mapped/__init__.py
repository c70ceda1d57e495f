"""Records whose fields a declaration names -> events: ``changes(...)``. Every field is a text or null, whatever the format (``json_fields``, ``parquet_fields``);
``mapping`` says what columns, order and deletes are made of, ``statement`` computes it by columns, ``records`` one by one. Begin with ``decoder``.
"""
