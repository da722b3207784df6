"""Fair searches of settings: the same number of trials for every model, drawn before anything runs.

``plan`` says what is searched, ``running`` trains what is missing, ``entries`` are the records,
``tables`` and ``questions`` write pages from them.
"""
