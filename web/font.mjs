// Writes the fonts that input.css names into a directory: Inter in the weights from 400 to 600, cut down to the letters
// of languages written in Latin script.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import subset from 'subset-font'

const to = process.argv[2]
const css = readFileSync(new URL('input.css', import.meta.url), 'utf8')

// letters are those of the face of a file, by its unicode-range.
const letters = (file) => {
  const face = css.split('@font-face').find((f) => f.includes(`url("${file}")`))
  return face.match(/unicode-range: ([^;]*)/)[1].split(',').map((range) => {
    const [first, last = first] = range.trim().slice(2).split('-').map((hex) => parseInt(hex, 16))
    return String.fromCodePoint(...Array.from({ length: last - first + 1 }, (_, i) => first + i))
  }).join('')
}

// features are what the pages need of what the font can do: kerning, the forms of a language, and figures of one width.
const features = ['ccmp', 'kern', 'locl', 'tnum']

for (const [file, source] of [['inter.woff2', 'latin'], ['inter-ext.woff2', 'latin-ext']]) {
  const whole = readFileSync(new URL(`node_modules/@fontsource-variable/inter/files/inter-${source}-wght-normal.woff2`, import.meta.url))
  writeFileSync(join(to, file), await subset(whole, letters(file), {
    targetFormat: 'woff2', variationAxes: { wght: { min: 400, max: 600 } }, keepFeatures: features, noHinting: true,
  }))
}
