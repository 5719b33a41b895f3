// Prints the licenses of everything that dist/browser/standalone.js bundles,
// according to its own list of modules.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const root = 'node_modules'
const scalar = join(root, '@scalar/api-reference')
const mit = (who) => `MIT License

Copyright (c) ${who}

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.
`

const names = new Set()
const stats = JSON.parse(readFileSync(join(scalar, 'dist/browser/webpack-stats.json'), 'utf8'))
for (const m of stats.modules) {
  for (const [, name] of m.name.matchAll(/node_modules\/((?:@[^/]+\/)?[^/.][^/]*)\//g)) names.add(name)
}

// whose names the holder when a package brings no file with its licence.
const whose = (p) => {
  const a = p.author ?? (p.contributors ?? p.maintainers ?? [])[0]
  return (typeof a === 'string' ? a : a?.name) ?? `the authors of ${p.name}`
}

const show = (name) => {
  const dir = join(root, name)
  if (!existsSync(dir)) return `${name}: not installed with the package; its licence is in its repository.\n`
  const p = JSON.parse(readFileSync(join(dir, 'package.json'), 'utf8'))
  const file = readdirSync(dir).find((f) => /^(licen[cs]e|copying)/i.test(f))
  const licence = typeof p.license === 'string' ? p.license : p.license?.type
  const text = file ? readFileSync(join(dir, file), 'utf8') : licence === 'MIT' ? mit(whose(p)) : ''
  if (text === '') return `${name} ${p.version}: the package brings no text of a licence (${licence ?? 'and names none'}); see ${p.homepage ?? p.repository?.url ?? p.repository ?? 'https://www.npmjs.com/package/' + name}.\n`
  return `${name} ${p.version} (${licence})\n\n${text.trim()}\n`
}

const { version } = JSON.parse(readFileSync(join(scalar, 'package.json'), 'utf8'))
const parts = [`scalar.js is dist/browser/standalone.js of @scalar/api-reference ${version}.\n\n${mit('2023-present Scalar').trim()}\n\nIt holds these packages:\n`]
for (const name of [...names].filter((n) => !n.startsWith('@scalar/')).sort()) parts.push(show(name))
process.stdout.write(parts.join(`\n${'-'.repeat(78)}\n\n`))
