"""Tables in whatever form they come, opened and read: columns as they came."""
