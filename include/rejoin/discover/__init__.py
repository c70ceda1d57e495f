"""``rejoin discover``: from what is there to a topology file to begin with. Start with ``places``, which asks one of ``directory``, ``topics``, ``database`` and
``iceberg``; then ``columns`` and ``foreign_keys`` (what samples say; pure), ``topology_file`` (the text; pure). A sample proves nothing, so every guess is
written beside its line.
"""
