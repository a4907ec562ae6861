"""Sources that knowledge bases keep in step with."""
