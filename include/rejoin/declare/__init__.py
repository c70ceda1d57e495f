"""What a user writes in a topology file, recorded as it is written and unchecked; ``plan.check.compile`` checks it."""
