"""Jobs: a piece of work in a person's files, from the request to a change that is proven and can be taken back."""
