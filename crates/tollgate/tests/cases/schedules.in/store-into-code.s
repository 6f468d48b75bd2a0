start: lw v0,(a0)
sw t0,start
jr ra
nop
