"""``rejoin discover``: from a directory of files to a topology file to begin with. Start with ``directory`` (reads samples), then ``columns`` and
``foreign_keys`` (what they say; pure), ``topology_file`` (the text; pure). A sample proves nothing, so every guess is written beside its line.
"""
