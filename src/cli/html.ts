import { escapeBidiControls } from './terminal-text.ts'

/** A piece of HTML. Only {@link html} makes one, so that every text in it was escaped. */
export class Html {
  readonly #text: string

  private constructor(text: string) {
    this.#text = text
  }

  /** For {@link html} and for constants of this program. */
  static trust(text: string): Html {
    return new Html(text)
  }

  toString(): string {
    return this.#text
  }
}

/** A value in a template: texts and numbers are escaped, pieces of HTML and lists of them are inserted. */
export type HtmlValue = string | number | Html | readonly HtmlValue[]

/** A template whose values are escaped: in texts and in attributes between double quotes. */
export function html(strings: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  const parts = strings.map((text, index) => (index < values.length ? text + insert(values[index] ?? '') : text))
  return Html.trust(parts.join(''))
}

function insert(value: HtmlValue): string {
  if (value instanceof Html) return value.toString()
  if (typeof value === 'object') return value.map(insert).join('')
  return escapeHtml(String(value))
}

const ENTITIES: ReadonlyMap<string, string> = new Map([
  ['&', '&amp;'],
  ['<', '&lt;'],
  ['>', '&gt;'],
  ['"', '&quot;'],
  ["'", '&#39;'],
  ['`', '&#96;'],
])

function escapeHtml(text: string): string {
  return (
    escapeBidiControls(text.toWellFormed())
      .replaceAll(/[&<>"'`]/g, (found) => ENTITIES.get(found) ?? '')
      // HTML cannot contain them; written out, they show what a script tried.
      // oxlint-disable-next-line no-control-regex -- control characters are what it looks for
      .replaceAll(/[\u0000-\u0008\u000B\u000C\u000E-\u001F\u007F-\u009F]/g, (found) => {
        return `\\x${found.charCodeAt(0).toString(16).padStart(2, '0')}`
      })
  )
}
