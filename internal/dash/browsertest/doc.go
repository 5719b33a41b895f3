// Package browsertest tests the dashboard in Chromium, as its users see it.
package browsertest
