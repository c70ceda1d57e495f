"""subscribe: left changes become subscriptions (KIP-213). Its SQL is ``joins.foreign_key.subscribe``."""
