"""The marketplace: a catalog of plugins, submissions, ratings, installs, full-text search."""
