import { pictureIn, truncateAndCount } from '../support/index.ts'
import { type ChartFrames, NO_PLOTLY, PLOTLY } from './chart-frames.ts'
import { html, type Html } from './html.ts'
import { nameText } from './foreign-text.ts'

const TABLE = 'application/vnd.sandglass.table+json'
const MAX_COLUMNS = 50
const MAX_ROWS = 100
const MAX_CELL = 500
const MAX_TEXT = 20_000
/** Maximum characters of HTML in a frame. */
const MAX_HTML = 512 * 1024

/**
 * Elements for which a browser connects to a host before or without applying the policy: the name of the host can carry data.
 */
const CONNECTS_AHEAD = /<(?=link|i?frame)/gi
const NO_LOOK_UPS = '<meta http-equiv="x-dns-prefetch-control" content="off">'

/** A value that a script showed, as the journal has it. */
interface Shown {
  readonly data: Readonly<Record<string, string>>
  readonly leftOut: readonly string[]
}

/**
 * A display: its chart, else its picture, its table, its HTML, or its text. All of it comes from a script: pictures are images, in which nothing
 * runs; a chart is data in a frame of {@link ChartFrames}; HTML stands in a frame in which no code runs and which reaches nothing.
 */
export function displayHtml({ data, leftOut }: Shown, charts: ChartFrames): Html {
  const missing = leftOut.length === 0 ? [] : html`<p class="left-out">left out: ${nameText(leftOut.join(', '))}</p>`
  const notDrawn = data[PLOTLY] === undefined || charts.canDraw ? [] : html`<p class="left-out">${NO_PLOTLY}</p>`
  return html`<figure>${bodyOf(data, charts)} ${notDrawn} ${missing}</figure>`
}

function bodyOf(data: Shown['data'], charts: ChartFrames): Html {
  const text = data['text/plain'] ?? data['text/markdown'] ?? ''
  const figure = data[PLOTLY]
  const chart = figure === undefined ? undefined : charts.frameOf(figure)
  if (chart !== undefined) return html`${chart}${captionHtml(text)}`
  const picture = pictureIn(data)
  if (picture !== undefined) {
    const source = `data:${picture.type};base64,${picture.content.toString('base64')}`
    return html`<img src="${source}" alt="${truncateAndCount(text, 500)}" />${captionHtml(text)}`
  }
  const table = tableIn(data[TABLE])
  if (table !== undefined) return tableHtml(table)
  const page = data['text/html']
  if (page !== undefined && page.length <= MAX_HTML) {
    const calm = `${NO_LOOK_UPS}${page.replaceAll(CONNECTS_AHEAD, '<x-')}`
    return html`<iframe sandbox="" title="HTML of the script" srcdoc="${calm}"></iframe>${captionHtml(text)}`
  }
  const others = Object.keys(data).filter((type) => type !== 'text/plain')
  return html`<pre>${truncateAndCount(text, MAX_TEXT)}</pre>
    ${others.map((type) => foldedHtml(type, data[type] ?? ''))}`
}

function captionHtml(text: string): Html | [] {
  return text.trim() === '' ? [] : html`<figcaption>${truncateAndCount(text, 2000)}</figcaption>`
}

function foldedHtml(type: string, content: string): Html {
  return html`<details>
    <summary>${nameText(type)}</summary>
    <pre>${truncateAndCount(content, MAX_TEXT)}</pre>
  </details>`
}

interface Table {
  readonly columns: readonly { readonly name: string; readonly index: boolean }[]
  readonly rows: readonly (readonly unknown[])[]
  readonly rowCount: number
}

/** The table of a script, which may be anything; undefined if it is none. */
function tableIn(json: string | undefined): Table | undefined {
  if (json === undefined) return undefined
  try {
    const { columns, rows, row_count: rowCount } = JSON.parse(json) as Record<string, unknown>
    if (!Array.isArray(columns) || !Array.isArray(rows) || !rows.every((row) => Array.isArray(row))) return undefined
    const named = columns.slice(0, MAX_COLUMNS).map((column: { name?: unknown; index?: unknown } | null) => ({
      name: typeof column?.name === 'string' ? truncateAndCount(column.name, MAX_CELL) : '',
      index: column?.index === true,
    }))
    return { columns: named, rows, rowCount: typeof rowCount === 'number' ? rowCount : rows.length }
  } catch {
    return undefined
  }
}

function textOf(value: unknown): string {
  if (value === null || value === undefined) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function tableHtml({ columns, rows, rowCount }: Table): Html {
  const shown = rows.slice(0, MAX_ROWS)
  const cell = (value: unknown, isIndex: boolean): Html => {
    const text = truncateAndCount(textOf(value), MAX_CELL)
    return isIndex
      ? html`<th>${text}</th>`
      : html`<td class="${typeof value === 'number' ? 'number' : 'words'}">${text}</td>`
  }
  const more =
    rowCount > shown.length ? html`<p class="left-out">the first ${shown.length} of ${rowCount} rows</p>` : []
  return html`<div class="wide">
      <table class="records">
        <thead>
          <tr>
            ${columns.map(({ name }) => html`<th>${name}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${shown.map(
            (row) =>
              html`<tr>
                ${columns.map(({ index }, place) => cell(row[place], index))}
              </tr>`,
          )}
        </tbody>
      </table>
    </div>
    ${more}`
}
