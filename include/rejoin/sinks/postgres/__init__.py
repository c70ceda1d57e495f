"""Delivery to a table of PostgreSQL. Start with ``table``; ``statements`` are its SQL, ``errors`` the server's errors as ours."""
