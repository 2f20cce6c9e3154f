import { identifier, isBuiltin, isIdentifier } from './python-name.ts'
import { toPythonLiteral } from './python-literal.ts'

/** A class that an annotation names. */
export interface PythonClass {
  readonly name: string
  /** `class Order(TypedDict): …`, without a line end. */
  readonly source: string
}

/** A field of a class: its key in the data, its annotation, and a comment or nothing. */
export interface PythonField {
  readonly key: string
  readonly type: string
  readonly note: string
}

const MAX_NAME = 48
/** Names that annotations use. */
const TAKEN = new Set(['Any', 'Literal', 'TypedDict', 'NotRequired', 'ToolError', 'ConversionError'])

/** The `TypedDict` classes of one tool. Each comes after those that it names, except itself. */
export class PythonClasses {
  readonly list: PythonClass[] = []
  readonly #prefix: string
  readonly #written = new Map<string, { readonly wanted: string; readonly text: string }>()
  readonly #reserved = new Set<string>()

  /** @param prefix prefix of the names of classes with a title or a definition. */
  constructor(prefix = '') {
    this.#prefix = prefix
  }

  /** Derives the preferred name of a class from its title, its definition, or its place. */
  preferredNameOf(title: unknown, reference: string | undefined, path: readonly string[]): string {
    const defined = reference?.split('/').at(-1) ?? ''
    for (const words of [title, defined.startsWith('__') ? '' : defined]) {
      if (typeof words !== 'string' || !/^[A-Za-z]/.test(words.trim())) continue
      const name = toPascalCase(words)
      if (name.length <= MAX_NAME) return this.#prefix + name
    }
    return toPascalCase(path.join(' ')).slice(0, MAX_NAME)
  }

  /** Reserves a name for a class that is not written yet. */
  reserve(wanted: string): string {
    const name = this.#findFreeName(wanted)
    this.#reserved.add(name)
    return name
  }

  /** Adds a class under its reserved or preferred name; equal classes with the same name are merged. */
  add(wanted: string, reserved: string | undefined, fields: readonly PythonField[]): string {
    const text = JSON.stringify(fields)
    if (reserved === undefined) {
      for (const [name, known] of this.#written) if (known.wanted === wanted && known.text === text) return name
    }
    const name = reserved ?? this.reserve(wanted)
    this.#written.set(name, { wanted, text })
    this.list.push({ name, source: writeClass(name, fields) })
    return name
  }

  #findFreeName(wanted: string): string {
    const base = TAKEN.has(wanted) || isBuiltin(wanted) ? `${wanted}_` : wanted
    for (let number = 1; ; number += 1) {
      const name = number === 1 ? base : `${base}${number}`
      if (!this.#reserved.has(name)) return name
    }
  }
}

/** `search orders` → `SearchOrders`. */
export function toPascalCase(words: string): string {
  const parts = words.split(/[^\p{XID_Continue}]+|_+/u).filter((part) => part !== '')
  const name = parts.map((part) => part.slice(0, 1).toUpperCase() + part.slice(1)).join('')
  return identifier(name === '' ? 'Value' : name)
}

function writeClass(name: string, fields: readonly PythonField[]): string {
  const notes = fields.map(({ note }) => (note === '' ? '' : `  # ${note}`))
  if (fields.every(({ key }) => isIdentifier(key) && !key.startsWith('__'))) {
    const lines = fields.map(({ key, type }, index) => `    ${key}: ${type}${notes[index]}`)
    return [`class ${name}(TypedDict):`, ...lines].join('\n')
  }
  // Only this form allows keys that are not identifiers.
  const lines = fields.map(({ key, type }, index) => `    ${toPythonLiteral(key, '"')}: ${type},${notes[index]}`)
  return [`${name} = TypedDict("${name}", {`, ...lines, '})'].join('\n')
}
