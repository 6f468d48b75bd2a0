lw v0,(a0)
lq t0,1
jr ra
nop
