"""Numbers that compiled functions share with the rest of the library.

They stand here so that neither side imports the other: a kernel is compiled anew when anything that
it imports is edited, and who only needs a number need not import numba.
"""

TAU_S = 10  # [s] run times below this count as this in the bounded slowdown

#: How much of a partition's resource each of its nodes has: more than any jobs there ask for.
ANY_NUMBER = 2**40
