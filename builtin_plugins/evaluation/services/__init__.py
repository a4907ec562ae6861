"""What the routes and the job do."""
