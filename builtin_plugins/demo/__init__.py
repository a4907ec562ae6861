"""The demonstration of the main job, in a throw-away instance."""
