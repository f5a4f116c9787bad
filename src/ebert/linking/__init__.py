"""Entity linking: candidate spans, E-BERT-MLM, iterative refinement, evaluation (Section 5.2)."""
