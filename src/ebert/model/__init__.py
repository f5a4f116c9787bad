"""Any masked language model of the transformers library, with entity vectors among its wordpieces."""
