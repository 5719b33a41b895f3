// Removes what no page has a use for from a style sheet of daisyUI, and what costs the browser time with each change of a
// page: selectors that look into an element with :has(), of the whole page, of parts that we do not nest and of alerts
// with a button; and selectors by the text of a class, for which it computes the styles of all elements of a list again
// when the list gets another class.
import { readFileSync, writeFileSync } from 'node:fs'
import postcss from 'postcss'
import parser from 'postcss-selector-parser'

const unused = /^(:root|label|.*\.(input|select|btn|floating-label)):has\(|\[class\*=/
const file = process.argv[2]
const css = postcss.parse(readFileSync(file))

// drop removes a selector, and what has no other selectors left.
const drop = (selector) => {
  const list = selector.parent
  selector.remove()
  if (!list || list.length > 0 || list.type === 'root') return
  if (list.value === ':not') list.remove()
  else drop(list.parent)
}
const plain = parser((list) => {
  const found = []
  list.walkPseudos((pseudo) => { if (pseudo.value === ':has' && unused.test(String(pseudo.parent))) found.push(pseudo.parent) })
  found.forEach(drop)
})
css.walkRules(/^\.prose /, (rule) => { rule.remove() })
css.walkRules(/:has\(/, (rule) => {
  rule.selector = plain.processSync(rule.selector)
  if (!rule.selector) rule.remove()
})
if (/\[class[*^$|~]?=/.test(css)) throw new Error('a selector by the text of a class is left')
writeFileSync(file, css.toString())
