import { z } from 'zod'
import { SandglassError } from '../errors/index.ts'
import type { StoreRecord } from '../stores/index.ts'
import { parseBounded } from '../support/index.ts'
import type { ArtifactInfo } from './service.ts'

/** All versions of one artifact, in one record of a store. */
export interface Versions {
  readonly name: string
  /** The version of the next save; it only grows. */
  readonly next: number
  /** The oldest first. */
  readonly versions: readonly ArtifactInfo[]
}

/** Maximum number of versions of one artifact. */
export const MAX_VERSIONS = 10_000

const SHAPE = z.object({
  v: z.literal(1),
  name: z.string(),
  next: z.int().nonnegative(),
  versions: z
    .array(
      z.object({
        version: z.int().nonnegative(),
        mime_type: z.string(),
        size: z.int().nonnegative(),
        sha256: z.string().regex(/^[0-9a-f]{64}$/),
        saved_at: z.string(),
      }),
    )
    .max(MAX_VERSIONS),
})

/** @throws SandglassError `store_damaged` for a record that Sandglass did not write. */
export function parseVersions({ text, key }: StoreRecord, store: string): Versions {
  const parsed = SHAPE.safeParse(parseJson(text))
  if (!parsed.success) {
    throw new SandglassError(
      'store_damaged',
      `${store}: the record ${key} is not one of an artifact: remove it, or update Sandglass`,
      { cause: parsed.error },
    )
  }
  const { name, next, versions } = parsed.data
  return {
    name,
    next,
    versions: versions.map(({ version, mime_type: mimeType, size, sha256, saved_at: savedAt }) => ({
      name,
      version,
      mimeType,
      size,
      sha256,
      savedAt,
    })),
  }
}

/** The text of the record. */
export function formatVersions({ name, next, versions }: Versions): string {
  const rows = versions.map(({ version, mimeType, size, sha256, savedAt }) => ({
    version,
    mime_type: mimeType,
    size,
    sha256,
    saved_at: savedAt,
  }))
  return JSON.stringify({ v: 1, name, next, versions: rows })
}

function parseJson(text: string): unknown {
  try {
    return parseBounded(text)
  } catch {
    return undefined
  }
}
