b 5f
nop
jr ra
nop
