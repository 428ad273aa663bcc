"""Marks that can be trusted, for instructors: students' code runs in a sandbox, and only arrays come out of it.

``cli`` is the command; ``batch`` marks a folder, ``results`` writes marks down; ``assignment`` says what is asked for;
``marker`` marks one submission, with ``prepared`` exercises, and ``sources`` of what has to be sent along; ``sandbox``
starts the server; what runs behind its walls is in ``inside``. Nothing in a lesson imports any of this, and nothing of
this can be imported by a student's code.
"""
