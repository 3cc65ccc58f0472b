"""What a person's words are wrapped in before an agent reads them."""
