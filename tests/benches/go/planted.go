//go:build planted

package goals

// What the two make more: 3 % and 1 %.
const moreOfThree, moreOfOne = 96, 32
