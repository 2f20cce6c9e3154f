/** The internals of a zod schema that {@link relaxZod} reads. */
interface ZodInternals {
  readonly _zod: { readonly def: ZodDefinition; readonly bag?: { readonly patterns?: Iterable<RegExp> } }
}

interface ZodDefinition {
  readonly type?: string
  readonly check?: string
  readonly coerce?: boolean
  readonly pattern?: RegExp
  readonly in?: ZodInternals
  readonly checks?: readonly ZodInternals[]
}

/** Makes the JSON Schema of zod lenient, as an `override` of its converter. */
export function relaxZod({ zodSchema, jsonSchema }: { readonly zodSchema: object; readonly jsonSchema: object }): void {
  const { def, bag } = (zodSchema as ZodInternals)._zod
  const isPreprocessed = def.type === 'pipe' && def.in?._zod.def.type === 'transform'
  // The JSON Schema of a File requires a string, which a File is not.
  if (def.coerce === true || def.type === 'catch' || def.type === 'file' || isPreprocessed)
    return keepOnly(jsonSchema, [])
  if (TAKES_UNDEFINED.has(def.type)) return admitNull(jsonSchema)
  const checks = [def, ...(def.checks ?? []).map(({ _zod }) => _zod.def)]
  const patterns = [...checks.flatMap(({ pattern }) => pattern ?? []), ...(bag?.patterns ?? [])]
  const hasFlags = patterns.some(({ flags }) => flags !== '' && flags !== 'u')
  if (hasFlags || checks.some(({ check }) => check === 'overwrite')) keepOnly(jsonSchema, ['type'])
}

const TAKES_UNDEFINED: ReadonlySet<string | undefined> = new Set(['optional', 'default', 'prefault'])

/** Also admits null, because JSON represents undefined in a list as null. */
function admitNull(json: object): void {
  const given = { ...json }
  keepOnly(json, [])
  Object.assign(json, { anyOf: [given, { type: 'null' }] })
}

function keepOnly(json: object, keywords: readonly string[]): void {
  for (const keyword of Object.keys(json)) if (!keywords.includes(keyword)) Reflect.deleteProperty(json, keyword)
}
