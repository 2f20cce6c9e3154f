import { readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { normalName } from './requirement.ts'

/** Well-known packages of PyPI, and their modules (docs/internals/known-packages.md). */
export interface KnownPackages {
  /** The day of the data. */
  readonly date: string
  /** True for a well-known package. */
  has(name: string): boolean
  /** The packages that contain a module, the most downloaded first. Empty if none is known: no name is guessed. */
  packagesFor(module: string): readonly string[]
}

/** The format of the shipped table. */
interface Table {
  readonly date: string
  /** The most downloaded first. */
  readonly packages: readonly string[]
  /** Positions in `packages` by module, the most downloaded first. */
  readonly imports: Readonly<Record<string, readonly number[]>>
}

const FILE = new URL('../../data/known-packages.json.gz', import.meta.url)

let loaded: KnownPackages | undefined

/** Reads the shipped table, once. */
export function loadKnownPackages(): KnownPackages {
  return (loaded ??= knownPackagesOf(JSON.parse(gunzipSync(readFileSync(FILE)).toString('utf8')) as Table))
}

function knownPackagesOf({ date, packages, imports }: Table): KnownPackages {
  const names = new Set(packages)
  const byModule = new Map(Object.entries(imports))
  return {
    date,
    has: (name) => names.has(normalName(name)),
    packagesFor: (module) => (byModule.get(module) ?? []).flatMap((at) => packages[at] ?? []),
  }
}
