// Package goals has operations of a few microseconds. With the tag planted two of them make more steps, and nothing else differs.
package goals

import "slices"

const number = 3200

// Steps that wait for each other.
//
//go:noinline
func steps(number uint64) uint64 {
	sum := uint64(1)
	for step := uint64(0); step < number; step++ {
		sum = sum*31 ^ step
	}
	return sum
}

// Numbers without an order, the same in each process.
func numbers() []uint64 {
	all, next := make([]uint64, 1000), uint64(1)
	for at := range all {
		all[at] = next >> 33
		next = next*6364136223846793005 + 1442695040888963407
	}
	return all
}

//go:noinline
func sum(numbers []uint64) uint64 {
	sum := uint64(0)
	for _, number := range numbers {
		sum += number
	}
	return sum
}

// The median of some of the numbers, which are copied and sorted.
func sort(numbers []uint64) uint64 {
	sorted := slices.Clone(numbers[:200])
	slices.Sort(sorted)
	return sorted[100]
}

// A map whose hashes are others in each process.
func table(numbers []uint64) map[uint64]uint64 {
	table := make(map[uint64]uint64)
	for at, number := range numbers {
		table[number] = uint64(at)
	}
	return table
}

// Finds some of the numbers in the map.
func find(table map[uint64]uint64, numbers []uint64) uint64 {
	sum := uint64(0)
	for _, number := range numbers[:200] {
		sum += table[number]
	}
	return sum
}
