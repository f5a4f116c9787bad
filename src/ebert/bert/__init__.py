"""Pretrained encoders by name: a local folder, the cache, the Hugging Face hub, or Maven."""
