// Blocks of 4 KiB read from a file that was opened with O_DIRECT, into a slice on the heap and into one on the stack of the goroutine; and read
// through the page cache. Microseconds of a read, or the error.
//
// With aligned=1 each slice is the aligned part of a larger one, as O_DIRECT asks for.
package main

import (
	"fmt"
	"os"
	"syscall"
	"time"
	"unsafe"
)

const (
	block = 4096
	reads = 256
)

// Set by the linker: -X main.aligned=1.
var aligned = ""

// What is stored here escapes to the heap.
var kept []byte

// A block of a slice of two.
func part(whole []byte) []byte {
	offset := 0
	if aligned != "" {
		offset = (block - int(uintptr(unsafe.Pointer(&whole[0]))%block)) % block
	}
	return whole[offset : offset+block]
}

func say(figure string, flags int, into []byte) {
	fd, err := syscall.Open("file", syscall.O_RDONLY|flags, 0)
	if err != nil {
		fmt.Println(figure, "not-opened")
		return
	}
	defer syscall.Close(fd)
	began := time.Now()
	for n := 0; n < reads; n++ {
		if _, err = syscall.Pread(fd, into, int64(n)*block); err == syscall.EINVAL {
			fmt.Println(figure, "EINVAL")
			return
		} else if err != nil {
			fmt.Println("read:", err)
			os.Exit(1)
		}
	}
	fmt.Println(figure, float64(time.Since(began).Nanoseconds())/1e3/reads)
}

func main() {
	file, err := os.Create("file")
	if err == nil {
		_, err = file.Write(make([]byte, reads*block))
	}
	if err == nil {
		err = file.Sync()
	}
	if err != nil {
		fmt.Println("file:", err)
		os.Exit(1)
	}
	file.Close()
	kept = make([]byte, 2*block)
	say("heap", syscall.O_DIRECT, part(kept))
	local := make([]byte, 2*block)
	say("stack", syscall.O_DIRECT, part(local))
	say("buffered", 0, part(local))
}
