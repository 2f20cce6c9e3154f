import { didYouMean } from '../support/index.ts'

const PLACEHOLDER = /\{\{\s*([\w]+)\s*\}\}/g

/**
 * Fills `{{name}}` in a text. What is put in is never looked at again, and a paragraph whose placeholders all come to
 * nothing is left out.
 */
export function filled(template: string, values: Readonly<Record<string, string>>): string {
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

/** @throws TypeError for a placeholder that nothing is known for. */
export function checkTemplate(name: string, template: unknown, known: readonly string[]): void {
  if (typeof template !== 'string') throw new TypeError(`prompts.${name}: must be a string`)
  for (const [, placeholder = ''] of template.matchAll(PLACEHOLDER)) {
    if (known.includes(placeholder)) continue
    throw new TypeError(
      `prompts.${name}: no placeholder {{${placeholder}}}.${didYouMean(placeholder, known)} Known are ${known.join(', ')}`,
    )
  }
}
