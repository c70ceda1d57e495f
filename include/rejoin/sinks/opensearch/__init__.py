"""Delivery to an index of OpenSearch or Elasticsearch. Start with ``index``; ``documents`` and ``mapping`` are pure."""
