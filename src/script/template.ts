import { didYouMean, formatValue } from '../support/index.ts'

const PLACEHOLDER = /\{\{\s*([\w]+)\s*\}\}/g

/**
 * Replaces `{{name}}` in a text. Inserted text is not searched for placeholders. A paragraph is left out if all its
 * placeholders are empty.
 */
export function fillTemplate(template: string, values: Readonly<Record<string, string>>): string {
  return template
    .split(/\n{2,}/)
    .map((paragraph) => {
      const names = [...paragraph.matchAll(PLACEHOLDER)].map(([, name = '']) => name)
      if (names.length > 0 && names.every((name) => valueOf(values, name) === '')) return ''
      return paragraph.replaceAll(PLACEHOLDER, (_, name: string) => valueOf(values, name))
    })
    .filter((paragraph) => paragraph.trim() !== '')
    .join('\n\n')
}

function valueOf(values: Readonly<Record<string, string>>, name: string): string {
  return Object.hasOwn(values, name) ? (values[name] ?? '') : ''
}

/** @throws TypeError for an unknown placeholder. */
export function checkTemplate(name: string, template: unknown, known: readonly string[]): void {
  if (typeof template !== 'string') throw new TypeError(`prompts.${name}: ${formatValue(template)} is not a string`)
  for (const [, placeholder = ''] of template.matchAll(PLACEHOLDER)) {
    if (known.includes(placeholder)) continue
    throw new TypeError(
      `prompts.${name}: no placeholder {{${placeholder}}}.${didYouMean(placeholder, known)} Choose one of: ${known.join(', ')}`,
    )
  }
}
