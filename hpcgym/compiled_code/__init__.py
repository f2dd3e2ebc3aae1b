"""Where compiled code is kept, so that it is compiled once and nobody else's is ever run.

``folders`` finds a folder that only the user can write to, ``files`` writes and checks what lies in
it, ``locks`` lets one process compile while others wait, and ``kept`` is all that knows numba.
"""
