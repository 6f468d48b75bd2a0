package goals

import "testing"

var result uint64

func BenchmarkThree(b *testing.B) {
	for n := 0; n < b.N; n++ {
		result = steps(number + moreOfThree)
	}
}

func BenchmarkOne(b *testing.B) {
	for n := 0; n < b.N; n++ {
		result = steps(number + moreOfOne)
	}
}

func BenchmarkSum(b *testing.B) {
	all := numbers()
	b.ResetTimer()
	for n := 0; n < b.N; n++ {
		result = sum(all)
	}
}

func BenchmarkSort(b *testing.B) {
	all := numbers()
	b.ResetTimer()
	for n := 0; n < b.N; n++ {
		result = sort(all)
	}
}

func BenchmarkFind(b *testing.B) {
	all := numbers()
	known := table(all)
	b.ResetTimer()
	for n := 0; n < b.N; n++ {
		result = find(known, all)
	}
}
