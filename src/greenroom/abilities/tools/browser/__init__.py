"""`browser_use`: a browser that a model leads through pages, one move at a time. What it reads are strangers' words."""
