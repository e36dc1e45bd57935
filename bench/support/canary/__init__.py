"""Parts of `box-3`: a key that must not leak, all places where it could be stored, and its possible encodings."""
