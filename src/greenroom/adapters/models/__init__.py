"""Language models: the wires they speak, what is known of them, and how they are found."""
