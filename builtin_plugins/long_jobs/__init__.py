"""Long jobs for people: the routes below `/v1/jobs`, and figures of the queue."""
