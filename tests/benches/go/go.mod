module goals

go 1.21
