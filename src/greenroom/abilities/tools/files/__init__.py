"""Tools that read and change the files of a workspace. Where those lie is the business of the port `Files`."""
