// The class i-NAME names an icon of Lucide as --icon, a picture that .icon draws as a mask. Tailwind keeps the classes
// that the templates name.
import { readdirSync, readFileSync } from 'node:fs'
import plugin from 'tailwindcss/plugin'

const from = new URL('node_modules/lucide-static/icons/', import.meta.url)
const names = readdirSync(from).filter((f) => f.endsWith('.svg')).map((f) => f.slice(0, -4))

const drawn = (name) => {
  const svg = readFileSync(new URL(`${name}.svg`, from), 'utf8')
    .replace(/<!--.*?-->/gs, '').replace(/\s+/g, ' ').replaceAll('> <', '><').trim()
    .replace(/ (class="[^"]*"|width="24"|height="24")/g, '').replace('stroke-width="2"', 'stroke-width="1.75"').replaceAll('"', "'")
  return `url("data:image/svg+xml,${svg.replace(/[<>#%]/g, encodeURIComponent)}")`
}

export default plugin(({ matchUtilities }) => matchUtilities(
  { i: (name) => ({ '--icon': drawn(name) }) },
  { values: Object.fromEntries(names.map((name) => [name, name])) },
))
