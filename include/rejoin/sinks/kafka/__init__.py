"""Delivery to a topic. Start with ``topic``; ``cursor`` says how far a topic is, ``records`` makes keys and values, ``avro`` and ``schema_registry`` their other
encoding. ``settings``, ``producer_metrics``, ``user_hooks`` and ``errors`` are about the client.
"""
