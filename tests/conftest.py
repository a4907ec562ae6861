"""The fixtures come from `kernel.testing`, which pytest loads through its entry point."""
