// Removes the selectors of daisyUI from a style sheet that look into an element with :has() and for which no page has a
// use: those of the whole page, and of parts that we do not nest. With each change of a page the browser looks for what
// they might match, which took it a third as long as the styles of what had changed.
import { readFileSync, writeFileSync } from 'node:fs'
import postcss from 'postcss'
import parser from 'postcss-selector-parser'

const unused = /^(:root|label|.*\.(input|select|btn|floating-label)):has\(/
const file = process.argv[2]
const css = postcss.parse(readFileSync(file))

// drop removes a selector, and what has no other selectors left.
const drop = (selector) => {
  const list = selector.parent
  selector.remove()
  if (list.length > 0 || list.type === 'root') return
  if (list.value === ':not') list.remove()
  else drop(list.parent)
}
const plain = parser((list) => list.walkPseudos((pseudo) => {
  if (pseudo.value === ':has' && unused.test(String(pseudo.parent))) drop(pseudo.parent)
}))
css.walkRules(/:has\(/, (rule) => {
  rule.selector = plain.processSync(rule.selector)
  if (!rule.selector) rule.remove()
})
writeFileSync(file, css.toString())
