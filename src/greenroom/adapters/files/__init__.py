"""The files of a workspace on the local disk, confined by the kernel or by walking folder by folder."""
