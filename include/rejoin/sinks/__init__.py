"""Sinks: the only code that talks to Kafka and PostgreSQL. Nothing here knows runs or who calls it."""
