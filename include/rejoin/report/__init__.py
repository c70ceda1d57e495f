"""What commands print, as tables for people and as data. Knows what it prints, runs nothing."""
