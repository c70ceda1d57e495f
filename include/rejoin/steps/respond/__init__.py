"""respond: the right side answers subscriptions and tells subscribers of its own changes (KIP-213). Its SQL is ``joins.foreign_key.respond``."""
