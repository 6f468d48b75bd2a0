.processes 99
jr ra
nop
