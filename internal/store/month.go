package store

import (
	"time"

	"postern/internal/postern"
)

// MonthOf names the UTC calendar month of an instant, such as 2026-11.
func MonthOf(t postern.Time) string { return t.Std().Format("2006-01") }

// MonthEnd is when a month named by MonthOf ends.
func MonthEnd(month string) postern.Time {
	t, err := time.Parse("2006-01", month)
	if err != nil {
		return 0
	}
	return postern.TimeOf(t.AddDate(0, 1, 0))
}
