import { truncateAndCount } from '../support/index.ts'
import { moreText, nameText } from './foreign-text.ts'
import { html, type Html } from './html.ts'

const MAX_COLUMNS = 20
const MAX_CELL = 200

type Json = Readonly<Record<string, unknown>>

/**
 * Data that a script emitted. A list of records is a table, also one level deep in an object; anything else is text or JSON.
 * @param max the maximum number of characters to show.
 */
export function dataHtml(data: unknown, max: number): Html {
  if (isTable(data)) return tableHtml(data, max)
  if (isRecord(data) && Object.values(data).some(isTable)) {
    const fields = Object.entries(data)
    const each = max / fields.length
    const shown = fields.slice(0, MAX_COLUMNS).map(([name, value]) => {
      return html`<h4>${nameText(name)}</h4>
        ${isTable(value) ? tableHtml(value, each) : textHtml(value, each)}`
    })
    return html`${shown}${moreHtml(fields.length - shown.length)}`
  }
  return textHtml(data, max)
}

function textHtml(data: unknown, max: number): Html {
  return html`<pre>${truncateAndCount(typeof data === 'string' ? data : jsonText(data, 2), Math.floor(max))}</pre>`
}

/** True for a list of objects that share enough keys for a table with few empty cells. */
function isTable(data: unknown): data is readonly Json[] {
  if (!Array.isArray(data) || data.length === 0 || !data.every(isRecord)) return false
  const columns = columnsOf(data)
  const filled = data.reduce((sum, row) => sum + Object.keys(row).length, 0)
  return columns.length > 0 && columns.length <= MAX_COLUMNS && 2 * filled >= columns.length * data.length
}

function isRecord(data: unknown): data is Json {
  return typeof data === 'object' && data !== null && !Array.isArray(data)
}

/** The keys of all rows, in order of appearance. Stops when there are more than a table may have. */
function columnsOf(rows: readonly Json[]): string[] {
  const columns = new Set<string>()
  for (const row of rows) {
    for (const key of Object.keys(row)) columns.add(key)
    if (columns.size > MAX_COLUMNS) break
  }
  return [...columns]
}

function tableHtml(rows: readonly Json[], max: number): Html {
  const columns = columnsOf(rows).map((name) => ({ name, style: isNumeric(rows, name) ? 'number' : 'words' }))
  const shown: Html[] = []
  for (let left = max; shown.length < rows.length && left > 0;) {
    const row = rows[shown.length] ?? {}
    const cells = columns.map(({ name, style }) => ({ style, text: cellText(row, name) }))
    left -= cells.reduce((sum, { text }) => sum + text.length + 1, 0)
    shown.push(
      html`<tr>
        ${cells.map(({ style, text }) => html`<td class="${style}">${text}</td>`)}
      </tr> `,
    )
  }
  return html`<div class="wide">
    <table class="records">
      <thead>
        <tr>
          ${columns.map(({ name, style }) => html`<th class="${style}">${nameText(name)}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${shown}
      </tbody>
    </table>
    ${moreHtml(rows.length - shown.length)}
  </div>`
}

/** True for a column of numbers; null is a gap among them. */
function isNumeric(rows: readonly Json[], column: string): boolean {
  const values = rows.map((row) => (Object.hasOwn(row, column) ? row[column] : null)).filter((value) => value !== null)
  return values.length > 0 && values.every((value) => typeof value === 'number')
}

function cellText(row: Json, column: string): string {
  if (!Object.hasOwn(row, column)) return ''
  const value = row[column]
  return truncateAndCount(typeof value === 'string' ? value : jsonText(value), MAX_CELL)
}

function jsonText(value: unknown, indent?: number): string {
  return JSON.stringify(value, null, indent) ?? 'null'
}

/** States how much is left out, if anything is. */
export function moreHtml(left: number): Html[] {
  return moreText(left).map((text) => html`<p>${text}</p>`)
}
