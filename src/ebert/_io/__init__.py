"""Files: written atomically, read compressed within limits, row by row; and the progress of long work."""
