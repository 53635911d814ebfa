"""All that runs beside a subject in a process of its own: it makes a call's arguments and reads what came of it.

Nothing here knows what is expected. The modules import torch, numpy, the standard library and one another, so that the
folder can be loaded where nothing else of rlassay is to be had.
"""
