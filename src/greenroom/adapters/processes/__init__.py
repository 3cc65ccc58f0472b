"""Commands run plainly, without a sandbox: a clean environment, nobody to ask, and nothing that outlives them."""
