// Runs in the head, before anything is painted: the theme that was chosen here.
(() => {
  'use strict'
  const root = document.documentElement
  const key = 'postern-theme'
  const themes = ['light', 'dark']
  root.dataset.script = ''

  const kept = () => {
    try {
      const t = localStorage.getItem(key)
      return themes.includes(t) ? t : ''
    } catch {
      return '' // a browser that keeps nothing for us
    }
  }
  const show = (t) => {
    if (t) root.dataset.theme = t
    else delete root.dataset.theme
    for (const s of document.querySelectorAll('select[data-theme-choice]')) s.value = t
  }

  show(kept())
  document.addEventListener('DOMContentLoaded', () => show(kept()))
  document.addEventListener('change', (e) => {
    if (!e.target.matches('select[data-theme-choice]')) return
    const t = themes.includes(e.target.value) ? e.target.value : ''
    try {
      if (t) localStorage.setItem(key, t)
      else localStorage.removeItem(key)
    } catch { /* it holds for this page only */ }
    show(t)
  })
  addEventListener('storage', (e) => { if (e.key === key || e.key === null) show(kept()) }) // another tab chose
})()
