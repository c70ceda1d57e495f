"""Where records are, and which of them are new: ``transport`` is the seam, ``registry`` finds one by the scheme of a path, ``files`` (``listing``, ``snapshot_files``) is the first."""
