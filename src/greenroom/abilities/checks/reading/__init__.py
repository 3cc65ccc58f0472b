"""Reading what checks print: which tests ran, what failed, why a check could not be run."""
