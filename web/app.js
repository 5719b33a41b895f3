// What the pages do beyond HTML. Everything works on attributes, so that parts
// which htmx brings later need no set-up:
//   data-copies="id"             copies the text of #id
//   data-shows="id"              shows and hides the password in #id
//   command, commandfor          as in HTML, for browsers that lack it
//   form[data-passkey]           asks the browser for a passkey, by data-options
//   data-pauses="id"             keeps what is in #id from asking for more by itself
//   data-rests                   does not ask for more while details in it are open, or somebody chooses something in it
//   details [data-loads]         has a link to what takes its place when the details are opened
//   textarea[data-draft="key"]   keeps what is written in it, in this tab, until it is sent; with data-draft-of, while
//                                that is the same
//   body[data-reader]            is who reads the page
//   data-most="n"                holds n children: those at the end go, data-cut tells
//   form[data-uploads="id"]      sends its file with a progress bar; what the answer has as #id takes its place
//   data-drops="id"              takes a file that is dropped into the field #id
//   input[data-most-bytes]       takes no file that is larger
//   details[data-drop]           closes on Escape and on a click elsewhere
//   body[data-time-zone]         is the time zone of what is written; the reader's own if it is empty
//   [data-zones]                 gets the time zones to choose from
//   time[data-local]             is written in that time, with data-exact to the second (0) or millisecond (3)
//   time[data-ago]               is written as the time since then
//   data-moves="id"              is a list whose links the arrow keys move through, also from the field #id
//   input[data-offset="id"]      is a date; #id gets the minutes by which that time is ahead of UTC when it begins
//   data-badge="key"             shows the number with this key of #health's data-badges
//   data-live="path"             says whether the page is connected to the stream at the path
(() => {
  'use strict'

  const say = (text) => {
    const to = document.getElementById('said')
    if (!to) return
    to.textContent = ''
    setTimeout(() => { to.textContent = text }, 50) // a change is read aloud, the same text is not
  }

  const copy = async (button) => {
    const from = document.getElementById(button.dataset.copies)
    if (!from) return
    let done = true
    try {
      await navigator.clipboard.writeText(from.textContent)
    } catch { // plain http, or not allowed: what is selected can be copied by hand
      const range = document.createRange()
      range.selectNodeContents(from)
      const s = getSelection()
      s.removeAllRanges()
      s.addRange(range)
      done = document.execCommand('copy')
    }
    const was = button.dataset.label ?? (button.dataset.label = button.textContent)
    button.textContent = done ? 'Copied' : 'Selected'
    say(done ? 'Copied' : 'Text selected. Copy it with the keyboard')
    clearTimeout(button.restore)
    button.restore = setTimeout(() => { button.textContent = was }, 2000)
  }

  const reveal = (button) => {
    const input = document.getElementById(button.dataset.shows)
    if (!input) return
    const shown = input.type === 'password'
    input.type = shown ? 'text' : 'password'
    button.setAttribute('aria-pressed', String(shown))
  }

  const pause = (button) => {
    const paused = document.getElementById(button.dataset.pauses)?.toggleAttribute('data-paused')
    button.textContent = paused ? 'Resume' : 'Pause'
    say(paused ? 'Paused' : 'Resumed')
  }

  const cut = () => {
    for (const list of document.querySelectorAll('[data-most]')) {
      if (list.children.length <= list.dataset.most) continue
      while (list.children.length > list.dataset.most) list.lastElementChild.remove()
      for (const e of document.querySelectorAll('[data-cut]')) e.hidden = e.dataset.cut === 'hides'
    }
  }

  const command = (button) => {
    const dialog = document.getElementById(button.getAttribute('commandfor'))
    if (!(dialog instanceof HTMLDialogElement)) return
    if (button.getAttribute('command') === 'close') dialog.close()
    else if (!dialog.open) dialog.showModal()
  }
  const native = 'command' in HTMLButtonElement.prototype

  document.addEventListener('click', (e) => {
    const at = e.target instanceof Element ? e.target : document.body
    const button = at.closest('button')
    if (button?.dataset.copies) copy(button)
    if (button?.dataset.shows) reveal(button)
    if (button?.dataset.pauses) pause(button)
    if (button?.hasAttribute('commandfor') && !native) command(button)
    if (at instanceof HTMLDialogElement) at.close() // the ground around the box
    for (const d of document.querySelectorAll('details[data-drop][open]')) if (!d.contains(at)) d.open = false
  })

  document.addEventListener('keydown', (e) => {
    if (e.key !== 'Escape') return
    for (const d of document.querySelectorAll('details[data-drop][open]')) {
      const inside = d.contains(document.activeElement)
      d.open = false
      if (inside) d.querySelector('summary').focus()
    }
  })

  document.addEventListener('keydown', (e) => {
    if (e.key === 'Enter' && (e.ctrlKey || e.metaKey) && e.target instanceof HTMLTextAreaElement) e.target.form?.requestSubmit()
  })

  // The arrow keys move through the links of a list. With Alt, they open the one after the current one, or before it.
  document.addEventListener('keydown', (e) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key]
    const list = step && document.querySelector('[data-moves]')
    if (!list || e.ctrlKey || e.metaKey || e.shiftKey || document.querySelector('dialog[open]')) return
    const links = [...list.querySelectorAll('a')]
    const search = document.getElementById(list.dataset.moves)
    if (e.altKey) {
      if (e.target.value || e.target.matches('input, select')) return // somebody writes or chooses
      const rows = [...list.querySelectorAll('li a')]
      const to = rows[rows.findIndex((a) => a.hasAttribute('aria-current')) + step]
      if (!to) return
      e.preventDefault()
      to.click()
    } else if (e.target === search || list.contains(e.target)) {
      const to = [search, ...links][links.indexOf(e.target) + 1 + step]
      if (!to) return
      e.preventDefault()
      to.focus()
    }
  })

  // Times are shown in the time zone of the workspace, or else in that of the reader.
  const known = (zone) => {
    try { return new Intl.DateTimeFormat('en', { timeZone: zone }) && zone } catch { return undefined }
  }
  const timeZone = known(document.body.dataset.timeZone || undefined)
  const clock = new Intl.DateTimeFormat('en', {
    timeZone, hourCycle: 'h23', year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric',
  })
  // How many minutes the clock is ahead of UTC at a time.
  const ahead = (time) => {
    const at = Object.fromEntries(clock.formatToParts(time).map((p) => [p.type, p.value]))
    return (Date.UTC(at.year, at.month - 1, at.day, at.hour, at.minute) - time) / 60000
  }
  // The same when the clock shows a time that is given as if it were in UTC.
  const aheadAt = (time) => ahead(time - ahead(time) * 60000)
  for (const list of document.querySelectorAll('[data-zones]')) list.append(...(Intl.supportedValuesOf?.('timeZone') ?? []).map((z) => new Option(z)))

  // Days are those of that time, which is ahead of UTC by more in summer.
  document.addEventListener('input', (e) => {
    const to = document.getElementById(e.target.dataset?.offset)
    if (!to) return
    const [year, month, day] = e.target.value.split('-').map(Number)
    to.value = day ? aheadAt(Date.UTC(year, month - 1, day + Number(e.target.dataset.after))) : ''
  }, true)

  // A passkey's answer is put into the form, which is sent then. htmx has no part in it.
  const askPasskey = async (form) => {
    const refused = form.querySelector('[data-refused]')
    refused.hidden = true
    try {
      if (!globalThis.PublicKeyCredential?.parseRequestOptionsFromJSON) throw new Error('This browser does not support passkeys, or this site does not use HTTPS.')
      const asked = JSON.parse(form.dataset.options)
      const answer = form.dataset.passkey === 'create'
        ? await navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(asked) })
        : await navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(asked) })
      form.elements.passkey.value = JSON.stringify(answer.toJSON())
      form.submit()
    } catch (e) {
      refused.textContent = {
        NotAllowedError: 'The request was canceled or timed out. Try again.',
        InvalidStateError: 'This device already has a passkey for your account.',
        SecurityError: 'Passkeys do not work at this address.',
      }[e.name] ?? e.message
      refused.hidden = false
    }
  }
  document.addEventListener('submit', (e) => {
    if (!e.target.dataset.passkey) return
    e.preventDefault()
    askPasskey(e.target)
  })

  // A file shows how much of it has arrived. A refused form comes back as part of the answer.
  const upload = (form) => {
    const bar = form.querySelector('[data-progress]')
    const refused = form.querySelector('[data-refused]')
    const wait = (waits) => {
      bar.hidden = !waits
      if (waits) form.dataset.sent = '1'
      else delete form.dataset.sent
    }
    const fail = (text) => {
      wait(false)
      unsent()
      refused.textContent = text
      refused.hidden = false
    }
    const request = new XMLHttpRequest()
    request.open('POST', form.getAttribute('action'))
    request.setRequestHeader('Accept', 'text/html')
    request.setRequestHeader('HX-Request', 'true') // the page that follows is read here first, and keeps its notice for the reader
    request.responseType = 'document'
    request.upload.onprogress = (e) => { bar.querySelector('progress').value = e.lengthComputable ? 100 * e.loaded / e.total : 0 }
    request.onload = () => {
      if (request.status < 400) return location.assign(request.responseURL)
      const answer = request.response?.getElementById(form.dataset.uploads)
      if (!answer) return fail(request.response?.querySelector('main p')?.textContent ?? 'The file was not sent.')
      unsent()
      document.getElementById(form.dataset.uploads).replaceWith(answer)
      answer.querySelector('[autofocus]')?.focus()
      say(answer.querySelector('[role=alert]')?.textContent ?? '')
    }
    request.onerror = () => fail('The file was not sent. Check the connection and the size of the file, then try again.')
    refused.hidden = true
    wait(true)
    request.send(new FormData(form))
  }
  document.addEventListener('submit', (e) => {
    if (!e.target.dataset.uploads || !e.target.querySelector('input[type=file]')?.files.length) return
    e.preventDefault()
    if (!e.target.dataset.sent) upload(e.target)
  })
  document.addEventListener('change', (e) => {
    const most = e.target.dataset?.mostBytes
    if (most) e.target.setCustomValidity(e.target.files[0]?.size > most ? 'Choose a file of at most 100 MB.' : '')
  })

  const under = (e) => e.dataTransfer?.types.includes('Files') && e.target instanceof Element ? e.target.closest('[data-drops]') : null
  const leave = () => { for (const d of document.querySelectorAll('[data-over]')) d.removeAttribute('data-over') }
  document.addEventListener('dragover', (e) => {
    const to = under(e)
    if (!to) return leave()
    e.preventDefault()
    to.toggleAttribute('data-over', true)
  })
  document.addEventListener('dragleave', (e) => { if (!e.relatedTarget) leave() })
  document.addEventListener('drop', (e) => {
    const field = document.getElementById(under(e)?.dataset.drops)
    leave()
    if (!field) return
    e.preventDefault()
    field.files = e.dataTransfer.files
    field.dispatchEvent(new Event('change', { bubbles: true }))
    field.focus()
    say(`${field.files[0]?.name ?? 'No file'} chosen`)
  })

  // A draft is kept until the page that follows has its field again, without the text: then it was sent. Those of
  // another reader are dropped, and those of what was saved meanwhile, perhaps by somebody else.
  const reader = document.body.dataset.reader
  const draftOf = (e) => e.dataset?.draft && `draft ${reader} ${e.dataset.draft}`
  const startOf = (e) => e.dataset.draftOf ? `${e.dataset.draftOf}\n` : ''
  const restore = (e) => {
    const key = draftOf(e), start = startOf(e), kept = sessionStorage.getItem(key)
    if (kept === null) return
    if (!kept.startsWith(start) || (!e.value && sessionStorage.getItem('sent') === key)) {
      return sessionStorage.removeItem(key)
    }
    if (e.value !== (start ? e.defaultValue : '')) return
    e.value = kept.slice(start.length)
    e.closest('details')?.setAttribute('open', '')
  }
  const unsent = () => sessionStorage.removeItem('sent')
  for (const key of reader ? Object.keys(sessionStorage) : []) {
    if (key.startsWith('draft ') && !key.startsWith(`draft ${reader} `)) sessionStorage.removeItem(key)
  }
  for (const e of document.querySelectorAll('[data-draft]')) restore(e)
  unsent()
  document.addEventListener('input', (e) => {
    if (draftOf(e.target)) sessionStorage.setItem(draftOf(e.target), startOf(e.target) + e.target.value)
  })
  document.addEventListener('submit', (e) => {
    for (const part of e.target.elements) if (draftOf(part)) sessionStorage.setItem('sent', draftOf(part))
  })

  // A form that is on its way is not sent twice by a double click; it is usable
  // again after a while, and at once for who comes back.
  document.addEventListener('submit', (e) => {
    if (e.target.method === 'dialog' || e.defaultPrevented) return
    if (e.target.dataset.sent) return e.preventDefault()
    e.target.dataset.sent = '1'
    setTimeout(() => { delete e.target.dataset.sent }, 3000)
  })
  addEventListener('pageshow', () => {
    for (const f of document.querySelectorAll('form[data-sent]')) delete f.dataset.sent
  })

  const written = new Intl.DateTimeFormat(undefined, { timeZone, dateStyle: 'medium', timeStyle: 'short' })
  const exactly = (digits) => new Intl.DateTimeFormat(undefined, {
    timeZone, year: 'numeric', month: 'short', day: 'numeric', hour: 'numeric', minute: '2-digit', second: '2-digit',
    ...(digits && { fractionalSecondDigits: digits }),
  })
  const timeOfDay = new Intl.DateTimeFormat(undefined, { timeZone, timeStyle: 'medium' })
  const forms = { 0: exactly(0), 3: exactly(3) }
  const zone = document.querySelector('[data-zone]')
  if (zone) zone.textContent = `Times are in ${written.resolvedOptions().timeZone.replaceAll('_', ' ')}.`
  const localize = () => {
    for (const t of document.querySelectorAll('time[data-local]')) {
      const when = new Date(t.dateTime)
      if (t.textContent === t.local || Number.isNaN(when.getTime())) continue
      t.title = t.dateTime
      t.textContent = t.local = (forms[t.dataset.exact] ?? written).format(when)
    }
  }
  localize()

  const since = (when) => {
    const s = Math.max(0, Math.floor((Date.now() - when) / 1000))
    if (s < 60) return `${s} s`
    if (s < 3600) return `${Math.floor(s / 60)} min`
    if (s < 172800) return `${Math.floor(s / 3600)} h ${Math.floor(s / 60) % 60} min`
    return `${Math.floor(s / 86400)} days`
  }
  const age = () => {
    for (const t of document.querySelectorAll('time[data-ago]')) {
      const when = new Date(t.dateTime)
      if (Number.isNaN(when.getTime())) continue
      const text = since(when)
      if (t.textContent !== text) t.textContent = text
      t.title = written.format(when)
    }
  }
  age()
  setInterval(() => { if (!document.hidden) age() }, 1000)
  // The health bar brings the numbers of the navigation.
  const badge = () => {
    const shown = JSON.parse(document.getElementById('health')?.dataset.badges ?? '{}')
    for (const b of document.querySelectorAll('[data-badge]')) {
      const [n, what] = shown[b.dataset.badge] ?? [0, '']
      b.hidden = !n
      if (b.textContent !== `${n} ${what}`) b.textContent = `${n} ${what}`
    }
  }
  badge()
  // The page behind a dialog stays where it is.
  const lock = () => document.documentElement.toggleAttribute('data-dialog', document.querySelector('dialog[open]') !== null)
  document.addEventListener('toggle', (e) => {
    lock()
    const part = e.target.open && e.target.querySelector('[data-loads]')
    if (!part) return
    const from = part.querySelector('a').href
    htmx.ajax('GET', from, { source: part, target: part, select: `#${part.id}`, swap: 'outerHTML' })
      .then(() => say(part.isConnected ? 'This could not be loaded' : 'Loaded'))
  }, true)
  // What a part brings is changed before it is drawn, so that no time is seen in UTC first.
  new MutationObserver(() => { cut(); localize(); age(); badge(); lock() }).observe(document.body, { childList: true, subtree: true, characterData: true })

  // The palette opens with Ctrl+K, or with a button, and is moved through with the arrow keys.
  const palette = document.getElementById('palette')
  const field = document.getElementById('palette-text')
  const openPalette = () => {
    if (!palette || palette.open) return
    palette.showModal()
    field.select()
    field.dispatchEvent(new Event('open'))
  }
  addEventListener('keydown', (e) => {
    if (palette && e.key?.toLowerCase() === 'k' && (e.ctrlKey || e.metaKey) && !e.shiftKey && !e.altKey) {
      e.preventDefault()
      openPalette()
    }
  })
  for (const b of document.querySelectorAll('[data-palette]')) b.addEventListener('click', openPalette)
  palette?.addEventListener('keydown', (e) => {
    const stops = [field, ...palette.querySelectorAll('#palette-found a')]
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key]
    if (step) {
      e.preventDefault()
      const at = Math.max(0, stops.indexOf(document.activeElement))
      stops[(at + step + stops.length) % stops.length].focus()
    } else if (e.key === 'Enter' && document.activeElement === field && !e.isComposing) {
      e.preventDefault()
      entered = true
      enter()
    }
  })
  // Enter opens the first thing found, once what was found is for the text as it is.
  let entered = false
  const enter = () => {
    const list = palette.querySelector('[data-found]')
    if (!entered || list?.dataset.found !== field.value.trim()) return
    entered = false
    list.querySelector('a')?.click()
  }
  field?.addEventListener('input', () => { entered = false })
  palette?.addEventListener('htmx:after:swap', enter)

  // A stream tells when something has changed, and the parts of the page that show it ask for their content then. Only
  // a page that is looked at has a stream: browsers open few connections to one server.
  const connect = (shown) => {
    let source, again
    let seen = Date.now() // when the server last answered: a stream that broke while the computer slept still looks open
    const see = () => { seen = Date.now() }
    document.addEventListener('htmx:before:response', (e) => { if (e.detail.ctx.response.status < 400) see() })
    const change = () => document.body.dispatchEvent(new Event('news'))
    const show = (ok) => {
      const at = new Date(seen).toDateString() === new Date().toDateString() ? timeOfDay : written
      const text = ok ? 'Live' : `Connection lost at ${at.format(seen)}. Reconnecting …`
      if (shown.textContent !== text) shown.textContent = text
      shown.classList.toggle('text-error', !ok)
    }
    const close = () => {
      clearTimeout(again)
      source?.close()
    }
    const open = () => {
      close()
      source = new EventSource(shown.dataset.live)
      source.onopen = () => { see(); show(true); change() }
      source.addEventListener('changed', () => { see(); change() })
      source.onerror = () => {
        show(false)
        if (source.readyState === EventSource.CLOSED) again = setTimeout(open, 3000)
      }
    }
    document.addEventListener('visibilitychange', () => document.hidden ? close() : open())
    addEventListener('pagehide', close)
    addEventListener('offline', () => { close(); show(false) })
    addEventListener('online', open)
    const begin = () => { if (!document.hidden) open() }
    if (document.readyState === 'complete') begin()
    else addEventListener('load', begin) // the page comes first
  }
  const live = document.querySelector('[data-live]')
  if (live) connect(live)

  // Nobody looks, or somebody wants to look at what is there: nothing is asked, and
  // what was asked before is not shown.
  const read = (part) => part.querySelector('details[open], select:focus')
  const rests = (e) => {
    const part = e.detail.ctx.sourceElement
    if (!part || part.matches('[data-loads]')) return false // somebody asks
    return part.closest('[data-paused]') || part.matches('[data-rests]') && read(part)
  }
  const first = (e) => e.detail.ctx.sourceElement?.getAttribute('hx-trigger') === 'load' // it is not asked for again
  document.addEventListener('htmx:before:request', (e) => { if (document.hidden && !first(e) || rests(e)) e.preventDefault() })
  // A part that has not changed since it was brought is not drawn again.
  document.addEventListener('htmx:before:swap', (e) => {
    const { target, text, sourceElement } = e.detail.ctx
    const again = sourceElement?.getAttribute('hx-trigger')?.includes('news')
    if (again && target.shownText === text) e.preventDefault()
    target.shownText = text
  })
  // A reload throws away what somebody is writing, and takes the place of the page that a form leads to.
  const sent = () => document.querySelector('form[data-sent]')
  const typed = () => [...document.querySelectorAll('textarea, input:not([type=hidden])')]
    .some((f) => f !== field && !f.dataset.draft && f.value !== f.defaultValue)
  // The session ended, or the server is ill: what is shown stays, and the page is loaded anew when it must be.
  document.addEventListener('htmx:before:response', (e) => {
    const { raw, status } = e.detail.ctx.response
    if ((raw.redirected || status === 401) && !typed() && !sent()) location.reload()
    if (raw.redirected || status >= 400 || rests(e)) e.preventDefault()
  })
})()
