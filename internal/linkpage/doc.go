// Package linkpage serves the pages on which whoever holds a phone sees the code
// that links it. They are for people, who have an address with a secret in it
// and no key.
//
// An address may be fetched by machines on its way, by mail scanners and
// previews, so a page shows a button only; what is behind it belongs to the
// first browser that posts the form, which gets a cookie.
package linkpage
