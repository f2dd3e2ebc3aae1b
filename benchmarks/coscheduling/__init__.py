"""The results of ELiSE on co-scheduling, computed anew."""
