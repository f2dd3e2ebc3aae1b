"""The compiled kernel: events, queue order and backfilling over flat arrays.

In reading order: ``state`` (the arrays), ``ordered`` (lists of jobs), ``events`` (the loop up to
the next scheduling pass), ``scores`` (orders that time changes), ``easy`` (a pass with no
reservation or one), ``profile`` and ``conservative`` (a pass with one for every job). ``easy.run``
and ``conservative.run`` simulate as far as they are told, and go on when called again. Over
``easy.run`` stand ``search`` and ``coverage`` (many weights on many slices) and ``lookahead``.
"""
