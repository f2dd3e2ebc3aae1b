"""The compiled simulator: events, queue order and backfilling over flat arrays.

In reading order: ``state`` (the arrays), ``ordered`` (lists of jobs), ``events`` (up to the
next scheduling pass), ``orders`` (by what the queue is served), ``passes`` and ``machines/pool`` (a
pass with no reservation or one: ``easy``; with one for each job: ``conservative``), ``loop`` (from
pass to pass: ``run`` simulates as far as it is told, and goes on when called again). Other machines
have passes of their own; ``machines/kinds`` lists them all;
``answers`` are what a simulation is told as it runs, ``many`` runs many of them.
"""
