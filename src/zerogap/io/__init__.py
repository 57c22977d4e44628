"""Files that are never half written, and how much memory there is."""
