"""Tools that read and change the files of a workspace, through the port `Files`."""
