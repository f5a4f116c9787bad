"""Word and entity vectors of one space, in a folder that opens at once however large it is."""
