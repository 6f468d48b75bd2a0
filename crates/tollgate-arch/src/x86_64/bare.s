.Ltg_bare_entry:
# The stack holds argc, argv and its null, envp (System V ABI).
    mov rax, [rsp]
    xor edi, edi
    cmp rax, 2
    jb 2f
    lea rsi, [rsp + 16]
    mov rdi, [rsi]
    lea rdx, [rsp + 8*rax + 16]
    mov eax, 59
    syscall
# execve(2) returns only on failure.
    mov edi, 126
2:  mov eax, 231
    syscall
tollgate_bare_end:
.popsection
