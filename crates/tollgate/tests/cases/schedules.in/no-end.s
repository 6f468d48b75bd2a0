lw v0,(a0)
sw t0,(a0)
