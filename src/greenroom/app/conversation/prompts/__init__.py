"""The texts around a person's input before an agent reads it."""
