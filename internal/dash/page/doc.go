// Package page is what people see of the dashboard: components that write HTML
// from plain structs, and the assets that they link. It decides nothing and
// knows no business types; package dash fills the structs and takes the forms.
//
// Everything works without a script. Nothing is inline: a page holds no script
// text, no style attribute and no event attribute, so that Policy can refuse
// all three.
package page

// Policy is the Content-Security-Policy under which every page works.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// config tells htmx to evaluate nothing, to bring no style of its own, to stay
// on this origin and to load no extension.
const config = `{"includeIndicatorCSS":false,"mode":"same-origin","extensions":"none","defaultTimeout":15000}`
