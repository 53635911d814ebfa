"""Grading: many submissions, each in isolation, and marks that can be repeated."""
