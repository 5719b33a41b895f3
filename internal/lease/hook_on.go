//go:build failpoints

package lease

import "postern/internal/failpoint"

func goesOn() bool { return failpoint.Makes(failpoint.StayConnected) }
