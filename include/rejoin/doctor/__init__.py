"""``rejoin doctor``: whether the sources of a topology are as they have to be, and stay so until the next run. Begin with ``checkup``, which asks one of
``databases``, ``topics``, ``files`` and ``tables``; ``findings`` says what they tell. Changes nothing anywhere.
"""
