"""Subjects in processes of their own that trust nothing they say: the harness's side."""
