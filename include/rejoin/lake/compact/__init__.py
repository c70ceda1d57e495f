"""How files lie and which are rewritten (``layout``, ``folding``), which records of streams may go (``stream_retention``), and what is freed (``expiry``)."""
