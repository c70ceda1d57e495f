"""``rejoin init``: ``init`` copies what is in ``template/``."""
