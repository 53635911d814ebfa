"""Adapters of published libraries: our operations mapped onto a library's own functions, unchanged.

An adapter reshapes and names, nothing more: what the library does to masks, dtypes, NaN and edge cases comes through.
Each
module imports its library when it is loaded, declares the library's convention and the versions it was tried with.
"""
