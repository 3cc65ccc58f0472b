"""What a person or a program reads: answers, progress, events in words, errors as sentences."""
