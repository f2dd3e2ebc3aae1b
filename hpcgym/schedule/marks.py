"""What a simulation notes of each job that has started: one number, the sum of these."""

from __future__ import annotations

CORRECTED = 1  # for each expiry of the prediction, up to 255
BACKFILLED = 256
STARTED_AS = 512  # times the number of jobs that started before
