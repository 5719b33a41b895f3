//go:build !failpoints

package failpoint

// At is where a test can make the program stop, fail or wait.
func At(Point) error { return nil }

// Makes tells whether a mistake is made throughout.
func Makes(Mistake) bool { return false }

// Slips tells whether a mistake is made this time.
func Slips(Mistake) bool { return false }
