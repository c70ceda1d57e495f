"""Sinks: the only code that talks to Kafka, PostgreSQL and OpenSearch. Nothing here knows runs or who calls it."""
