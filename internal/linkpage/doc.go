// Package linkpage serves the pages that show the code for linking a phone to the person who
// has the phone. The person needs no API key; the address of the page contains a secret.
//
// Mail scanners and link previews may fetch the address on its way, so the page first shows
// only a button. The code is shown only to the first browser that presses it, which gets a
// cookie.
package linkpage
