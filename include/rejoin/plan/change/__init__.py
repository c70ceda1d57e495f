"""What an edit of a topology means for what is stored: ``compatibility`` refuses, ``outlook`` says what the next run does, ``edits`` says it in words,
``fingerprint`` tells definitions apart, ``stream_retention`` what has to stay.
"""
