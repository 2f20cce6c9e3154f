import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { html, Html } from './html.ts'

/** The MIME type of a figure of plotly. */
export const PLOTLY = 'application/vnd.plotly.v1+json'
/** Shown instead of a chart if the package is missing. */
export const NO_PLOTLY =
  'Charts of plotly are drawn by a package that is not installed: npm install plotly.js-strict-dist-min'

/** Maximum characters of a figure: what the journal keeps of one display. */
const MAX_FIGURE = 1024 * 1024
const HEIGHT = { least: 120, usual: 450, most: 1200 } as const
const NAME = 'plotly'

/** Runs in the hidden frame: sends the text of plotly.js to the frames of charts by messages, because they have other origins. */
const GIVE = `
addEventListener('message', ({ data, source }) => {
  if (data === 'wanted') source.postMessage(document.getElementById('drawer').textContent, '*')
})
for (let place = 0; place < parent.frames.length; place += 1) parent.frames[place].postMessage('here', '*')
`

/** Runs in the frame of a chart: requests plotly.js, runs it, and draws. The policy allows no other code. */
const DRAW = `
const chart = document.getElementById('chart')
const fail = (error) => { chart.textContent = 'This chart cannot be drawn: ' + (error?.message ?? error) }
const ask = () => parent.frames.${NAME}?.postMessage('wanted', '*')
let asked = true
addEventListener('message', ({ data, source }) => {
  if (!asked || source !== parent.frames.${NAME}) return
  if (data === 'here') return ask()
  asked = false
  const script = document.createElement('script')
  script.textContent = data
  document.head.append(script)
  try {
    const figure = JSON.parse(document.getElementById('figure').textContent)
    Plotly.newPlot(chart, { ...figure, config: { displayModeBar: false, responsive: true } }).catch(fail)
  } catch (error) {
    fail(error)
  }
})
ask()
`

const STYLE = 'html, body, #chart { margin: 0; height: 100%; font: 13px system-ui, sans-serif; }'

/** The text of plotly.js, in the bundle that needs no `eval`; undefined where the package is not installed. */
export async function loadPlotly(): Promise<string | undefined> {
  let file: string
  try {
    file = import.meta.resolve('plotly.js-strict-dist-min')
  } catch {
    return undefined
  }
  return readFile(fileURLToPath(file), 'utf8')
}

/**
 * The charts of one page. Each is a frame of an origin of its own, in which only plotly.js and two constants run and which reaches nothing;
 * the figure is data in it. plotly.js, 5 MB, is on the page once, in a hidden frame.
 */
export class ChartFrames {
  readonly #plotly: string | undefined
  readonly #scripts: string
  #isUsed = false

  /** @param plotly its text, if the package is installed. */
  constructor(plotly?: string) {
    this.#plotly = plotly === undefined ? undefined : scriptText(plotly)
    this.#scripts = [this.#plotly ?? '', GIVE, DRAW].map(hashOf).join(' ')
  }

  get canDraw(): boolean {
    return this.#plotly !== undefined
  }

  /** The policy of the page, which its frames inherit: no code runs but that of the charts, if there are any. */
  get policy(): string {
    const base = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    return this.#isUsed ? `${base}; script-src ${this.#scripts}` : base
  }

  /** The frame of a figure; undefined without plotly, and for JSON that is not a figure or is too large. */
  frameOf(json: string): Html | undefined {
    const figure = this.canDraw ? parseFigure(json) : undefined
    if (figure === undefined) return undefined
    this.#isUsed = true
    const body = `<noscript>This chart needs JavaScript.</noscript><div id="chart"></div>
<script type="application/json" id="figure">${figure.json}</script><script>${DRAW}</script>`
    return html`<iframe
      class="chart"
      sandbox="allow-scripts"
      loading="lazy"
      title="chart of the script"
      style="height: ${figure.height}px"
      srcdoc="${this.#document(body)}"
    ></iframe>`
  }

  /** The frame with plotly.js, for the end of the page. */
  get source(): Html | readonly [] {
    if (!this.#isUsed) return []
    const body = `<script type="text/plain" id="drawer">${this.#plotly ?? ''}</script><script>${GIVE}</script>`
    return html`<iframe hidden name="${NAME}" sandbox="allow-scripts" srcdoc="${this.#document(body)}"></iframe>`
  }

  /** A document for `srcdoc`. The escapes of other text would change plotly.js, whose hash is in the policy. */
  #document(body: string): Html {
    const page = `<!doctype html><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${this.policy}"><style>${STYLE}</style>${body}`
    return Html.trust(page.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;'))
  }
}

/** A figure as JSON of ASCII without `<`, which stays in its element, and the height of its frame. */
function parseFigure(text: string): { readonly json: string; readonly height: number } | undefined {
  if (text.length > MAX_FIGURE) return undefined
  try {
    const { data, layout, frames } = JSON.parse(text) as Record<string, unknown>
    if (!Array.isArray(data)) return undefined
    const json = JSON.stringify({ data, layout, frames }).replaceAll(
      /[<\u007F-\uFFFF]/g,
      (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`,
    )
    const height = (layout as { readonly height?: unknown } | null | undefined)?.height
    return { json, height: Math.round(typeof height === 'number' ? clamp(height) : HEIGHT.usual) }
  } catch {
    return undefined // no JSON, or nested too deep for this process
  }
}

function clamp(height: number): number {
  return Math.min(Math.max(height, HEIGHT.least), HEIGHT.most)
}

/** The text of a script for an element: nothing in it ends the element, and its line ends are those of its hash. */
function scriptText(text: string): string {
  return text
    .replaceAll(/\r\n?/g, '\n')
    .replaceAll('<!--', '<\\!--')
    .replaceAll(/<\/(script)/gi, '<\\/$1')
}

function hashOf(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`
}
