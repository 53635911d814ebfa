"""A package whose modules hold the functions; `train` is a script that must not run."""
