//go:build !planted

package goals

// What the two make more.
const moreOfThree, moreOfOne = 0, 0
