"""Debezium's change events: ``decoder`` says what each becomes, ``versions`` what the versions of a row are, ``shapes`` both in SQL of plain lines."""
