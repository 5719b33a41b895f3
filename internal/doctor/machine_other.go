//go:build !linux

package doctor

import (
	"context"
	"errors"
)

func freeMemory() (int64, error) { return 0, errors.New("this system does not say") }

// Clock cannot be checked on this system.
func Clock() Check {
	return Check{"clock", func(context.Context) Finding {
		return Skip("This system does not say whether it is " +
			"synchronized.")
	}}
}
