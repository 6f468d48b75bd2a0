one
two ÿ
