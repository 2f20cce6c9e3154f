import { SandglassError } from '../errors/index.ts'

/** Secrets and hidden values, one per object because a name can have had several values. */
type HiddenValues = readonly Readonly<Record<string, string>>[]

/** Each cell prepares the search for them on the event loop, which takes 0.1 to 0.8 s at this size (2 x Xeon). */
const MAX_HIDDEN_BYTES = 32 * 1024

/** Adds the values that a cell hides to those of earlier cells. @throws SandglassError `invalid_request` if they become too large. */
export function addHidden(known: HiddenValues, ...given: readonly (object | null | undefined)[]): HiddenValues {
  const hidden = [...known, ...given.flatMap((values) => selectUnknown(known, values))]
  if (hidden.length > known.length) assertMaxBytes(hidden)
  return hidden
}

/** Selects the values that are not known yet, each with its name. Values that are not strings are refused elsewhere. */
function selectUnknown(known: HiddenValues, given: object | null | undefined): Record<string, string>[] {
  return Object.entries(given ?? {}).flatMap(([name, value]: [string, unknown]) =>
    typeof value !== 'string' || known.some((one) => Object.hasOwn(one, name) && one[name] === value)
      ? []
      : [{ [name]: value }],
  )
}

function assertMaxBytes(hidden: HiddenValues): void {
  const sizes = hidden.flatMap(Object.entries<string>).map(([name, value]) => Buffer.byteLength(name + value))
  const bytes = sizes.reduce((sum, size) => sum + size, 0)
  if (bytes > MAX_HIDDEN_BYTES)
    throw new SandglassError(
      'invalid_request',
      `secrets: this session would have ${bytes} bytes of secrets and hidden values to search for; the limit is ${MAX_HIDDEN_BYTES}; ` +
        'open another session',
    )
}
