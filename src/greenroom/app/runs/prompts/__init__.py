"""What those are told who do a job."""
