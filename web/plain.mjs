// Removes selectors of daisyUI that slow down style updates: :has() on the page, on fields, on buttons and on alerts with
// a button; attribute selectors on class; and .prose. No page of ours needs them. With the last two, Chromium computes the
// styles of a whole list again when a class on the list changes.
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
  list.walkPseudos((pseudo) => {
    if (pseudo.value === ':has' && unused.test(String(pseudo.parent).trim())) found.push(pseudo.parent)
  })
  found.forEach(drop)
})
css.walkRules(/^\.prose /, (rule) => { rule.remove() })
css.walkRules(/:has\(/, (rule) => {
  rule.selector = plain.processSync(rule.selector)
  if (!rule.selector) rule.remove()
})
css.walkRules(/:has\(|\[class[*^$|~]?=/, ({ selector }) => {
  const ours = /^\.(panel|pick|choice|alert):has\(/.test(selector) && !selector.includes('[class')
  if (!ours) throw new Error(`${selector}: does a page need this?`)
})
writeFileSync(file, css.toString())
