"""The HTTP service: one model, and a linker if there is one, for many clients (extra `serve`)."""
