"""Hostile files made by the thousand: atheris mutates real models, knowing what a model is, and watches our code run.

    python -m fuzz --seconds 60 [TARGET...]

`targets` says what is run and what counts as a fault, `edits` how models of each format are changed, `seeds` what is
changed, `recipes` how a finding is kept without the model it was made from; `campaign` runs processes under limits.
"""
