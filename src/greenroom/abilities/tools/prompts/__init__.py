"""What the model is told that leads the browser, in every language we speak."""
