"""Reading and writing the formats of other programs: Wikipedia2Vec, word2vec, GloVe, numpy."""
