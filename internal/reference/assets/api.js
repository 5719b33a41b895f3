// What the reference can do beyond its HTML: filter, copy, try out, and find what old links name.
'use strict'
{
  const make = (name, set, ...inside) => {
    const e = Object.assign(document.createElement(name), set)
    e.append(...inside)
    return e
  }

  // Links to the reference of earlier versions name an entry of the overview, which leads on.
  const follow = () => {
    if (!/^#(tag|model)\/./.test(location.hash)) return
    let id = location.hash.slice(1)
    try { id = decodeURIComponent(id) } catch { return }
    const link = document.getElementById(id)?.querySelector('a')
    if (link) location.replace(link.href)
  }
  addEventListener('hashchange', follow)
  follow()

  // The filter shows what has all its words, in a title or in the method and path.
  const filter = document.getElementById('filter')
  const groups = [...document.querySelectorAll('#sections details')].map((group) => ({
    group, open: group.open, name: group.firstElementChild.textContent, items: [...group.querySelectorAll('li')],
  }))
  filter.hidden = false
  filter.oninput = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean)
    let found = 0
    for (const g of groups) {
      let here = 0
      for (const item of g.items) {
        const text = `${g.name} ${item.textContent} ${item.firstElementChild.title}`.toLowerCase()
        item.hidden = !words.every((w) => text.includes(w))
        if (!item.hidden) here++
      }
      g.group.hidden = here === 0
      g.group.open = words.length > 0 ? here > 0 : g.open
      found += here
    }
    document.getElementById('nothing').hidden = found > 0
  }

  // Trying out. The key is in this variable only.
  let key = ''
  const mostShown = 1 << 18 // characters of a response

  // labeled is a field of the form with its name.
  const labeled = (name, field) => make('label', {}, name, field)

  // parameters are the fields of an operation's parameters.
  const parameters = (section) => [...section.querySelectorAll('[data-in]')].map((li) => {
    const name = li.querySelector('code').textContent
    const required = li.firstElementChild.querySelector('.required') !== null
    const input = make('input', { required, autocomplete: 'off', spellcheck: false })
    return { name, in: li.dataset.in, input, label: labeled(required ? name : `${name} (optional)`, input) }
  })

  // bodyOf is the field of a body: the text that the example sends, or a file.
  const bodyOf = (command) => {
    const type = /Content-Type: ([^"]+)/.exec(command)?.[1]
    if (!type) return null
    if (!type.includes('json')) {
      const input = make('input', { type: 'file', required: true })
      return { type, label: labeled('File', input), value: () => input.files[0] }
    }
    const text = command.slice(command.indexOf("-d '") + 4, -1).replaceAll("'\\''", "'")
    const area = make('textarea', { value: text, rows: Math.min(text.split('\n').length + 1, 16), spellcheck: false })
    return { type, label: labeled('Body', area), value: () => area.value }
  }

  // requestOf is what to ask for with the values of a form.
  const requestOf = (section, fields, body) => {
    const headers = new Headers({ Authorization: `Bearer ${key.trim()}` })
    const query = new URLSearchParams()
    let path = section.dataset.path
    for (const f of fields) {
      const value = f.input.value
      if (f.in === 'path') path = path.replace(`{${f.name}}`, encodeURIComponent(value))
      else if (value !== '' && f.in === 'query') query.append(f.name, value)
      else if (value !== '') headers.set(f.name, value)
    }
    if (body) headers.set('Content-Type', body.type)
    const address = query.size > 0 ? `${path}?${query}` : path
    return [address, { method: section.dataset.method, headers, body: body?.value(), credentials: 'omit', cache: 'no-store' }]
  }

  // show writes a response as it arrives.
  const show = async (response, output) => {
    const type = response.headers.get('Content-Type') ?? ''
    if (!/json|text|xml/.test(type)) {
      const bytes = (await response.arrayBuffer()).byteLength
      output.textContent = bytes === 0 ? '' : `(${bytes} bytes of ${type})`
      return
    }
    let text = ''
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
    while (text.length < mostShown) {
      const { done, value } = await reader.read()
      if (done) break
      output.textContent = text += value
    }
    reader.cancel()
    try { output.textContent = JSON.stringify(JSON.parse(text), null, 2) } catch { /* it is no JSON, or not all of it */ }
  }

  // formOf is the form that tries out an operation.
  const formOf = (section) => {
    const fields = parameters(section)
    const body = bodyOf(section.querySelector('figure code').textContent)
    const secret = make('input', { className: 'secret', value: key, required: true, autocomplete: 'off', spellcheck: false })
    const send = make('button', { textContent: 'Send' })
    const status = make('p', {})
    status.setAttribute('role', 'status')
    const output = make('pre', { hidden: true, tabIndex: 0 })
    const form = make('form', { className: 'send' }, labeled('API key', secret), ...fields.map((f) => f.label),
      ...body ? [body.label] : [], send, status, output)
    let stop = null
    form.onsubmit = async (event) => {
      event.preventDefault()
      if (stop) return stop.abort()
      stop = new AbortController()
      key = secret.value
      send.textContent = 'Stop'
      status.textContent = 'Waiting for the response'
      output.textContent = ''
      const start = performance.now()
      try {
        const [address, options] = requestOf(section, fields, body)
        const response = await fetch(address, { ...options, signal: stop.signal })
        status.textContent = `${response.status} ${response.statusText} after ${Math.round(performance.now() - start)} ms`
        output.hidden = false
        await show(response, output)
      } catch (error) {
        status.textContent += error.name === 'AbortError' ? ' (stopped)' : ` (${error.message})`
      }
      stop = null
      send.textContent = 'Send'
    }
    return form
  }

  for (const section of document.querySelectorAll('[data-method]')) {
    const button = make('button', { type: 'button', className: 'try', textContent: 'Try it' })
    button.onclick = () => {
      const form = formOf(section)
      section.querySelector('figure').before(form)
      button.remove()
      form.querySelector('input').focus()
    }
    section.querySelector('figcaption').append(button)
  }

  // Copy buttons, where the browser lets pages copy.
  for (const f of navigator.clipboard ? document.querySelectorAll('figure') : []) {
    const button = make('button', { type: 'button', textContent: 'Copy' })
    button.onclick = async () => {
      await navigator.clipboard.writeText(f.querySelector('code').textContent)
      button.textContent = 'Copied'
      setTimeout(() => { button.textContent = 'Copy' }, 2000)
    }
    f.firstElementChild.append(button)
  }
}
