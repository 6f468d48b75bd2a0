.machine x86
lock: xchg [x]
critical section
