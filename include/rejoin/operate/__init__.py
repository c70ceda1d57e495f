"""What is done to a lake between runs: compaction, expiry, comparison with the definition and repair, and what was kept aside or stored wrong."""
