// Package page has the dashboard's HTML: components that render plain structs, and the assets
// that they link. It makes no decisions and knows no business types; package dash fills the
// structs and handles the forms.
//
// Everything works without scripts. Nothing is inline: pages have no script text, style
// attributes, or event attributes, so that Policy can forbid all three.
package page

// Policy is the Content-Security-Policy under which every page works.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
	"media-src 'self'; connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// config keeps htmx from evaluating code, adding styles, leaving this origin, and loading
// extensions.
const config = `{"includeIndicatorCSS":false,"mode":"same-origin","extensions":"none","defaultTimeout":15000}`
