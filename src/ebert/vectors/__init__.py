"""Word and entity vectors in one space, in a folder that opens at once, however large it is."""
