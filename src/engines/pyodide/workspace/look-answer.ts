import { CAPS, truncateLikeHarness } from '../../../protocol/index.ts'

const MAX_DIMENSIONS = 4

type Fields = Readonly<Record<string, unknown>>
type Failure = { readonly code: string; readonly message: string }

/** The variables or names on the line of an instance, which is hostile: invalid ones are left out. */
export function parseLookAnswer(line: Uint8Array | undefined, ofVariables: boolean): readonly unknown[] | Failure {
  const { type, found, error } = fieldsOf(line)
  if (type !== 'looked' || !Array.isArray(found)) {
    const why = typeof error === 'string' ? `: ${truncateLikeHarness(error, CAPS.missingItemChars)}` : ''
    return { code: 'io', message: `the process of the session did not answer${why}` }
  }
  const listed = found.slice(0, CAPS.listedNames) as readonly unknown[]
  if (!ofVariables) return listed.filter((name) => typeof name === 'string').map(cut)
  return listed.flatMap((each) => variableOf(each as Fields | null) ?? [])
}

function variableOf(claimed: Fields | null): object | undefined {
  const { name, type, shape, bytes } = claimed ?? {}
  if (typeof name !== 'string' || typeof type !== 'string') return undefined
  const isShape = Array.isArray(shape) && shape.length <= MAX_DIMENSIONS && shape.every(isSize)
  return { name: cut(name), type: cut(type), shape: isShape ? shape : null, bytes: isSize(bytes) ? bytes : null }
}

function cut(text: string): string {
  return truncateLikeHarness(text, CAPS.missingItemChars)
}

function isSize(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 0
}

function fieldsOf(line: Uint8Array | undefined): Fields {
  try {
    return (JSON.parse(Buffer.from(line ?? []).toString('utf8')) ?? {}) as Fields
  } catch {
    return {}
  }
}
