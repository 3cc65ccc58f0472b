"""The source designs: classes with their original names and fields, built on Greenroom."""
