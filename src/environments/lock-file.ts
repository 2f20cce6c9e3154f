import { createHash } from 'node:crypto'
import { messageOf, SandglassError } from '../errors/index.ts'
import type { LockedPackage } from './options.ts'
import { normalName } from './requirement.ts'

/** A lock that uv wrote: the exact packages of an environment. */
export interface Lock {
  /** The file itself, from which packages are installed. */
  readonly text: string
  /** By name, in order. */
  readonly packages: readonly LockedWheel[]
  /** The sum of the largest wheel of each package, in bytes. Only wheels whose sizes the index reports count. */
  readonly downloadBytes: number
}

interface LockedWheel extends LockedPackage {
  /** SHA-256 of each wheel that may be used, sorted. */
  readonly hashes: readonly string[]
  /** Bytes of the largest of them; 0 if the index reports no sizes. */
  readonly bytes: number
}

/** The maximum size of a lock. A larger one is a mistake or an attack. */
const MAX_LOCK_SIZE = 4 * 1024 * 1024
const SHA256 = /^[0-9a-f]{64}$/

/**
 * Reads a lock (`pylock.toml`, PEP 751).
 * @throws SandglassError `dependency_invalid` if it is not one, or if a wheel has no SHA-256.
 */
export async function readLock(text: string): Promise<Lock> {
  const { parse } = await import('smol-toml')
  assertLockSize(text.length)
  let data: { packages?: unknown }
  try {
    data = parse(text)
  } catch (error) {
    throw invalid(messageOf(error).split('\n', 1)[0] ?? '', error)
  }
  const listed = data.packages ?? []
  if (!Array.isArray(listed)) throw invalid('packages is not a list')
  const packages = listed.map(readPackage).toSorted((a, b) => (a.name < b.name ? -1 : 1))
  return { text, packages, downloadBytes: packages.reduce((sum, { bytes }) => sum + bytes, 0) }
}

/** @throws SandglassError `dependency_invalid` for a lock that is too large to be read. */
export function assertLockSize(size: number): void {
  if (size > MAX_LOCK_SIZE) throw invalid(`it has more than ${MAX_LOCK_SIZE} bytes`)
}

function readPackage(one: unknown): LockedWheel {
  const { name, version, wheels } = one as { name?: unknown; version?: unknown; wheels?: unknown }
  if (typeof name !== 'string' || typeof version !== 'string') throw invalid('a package has no name or version')
  if (!Array.isArray(wheels) || wheels.length === 0) throw invalid(`${name} has no wheels`)
  const hashes = wheels.map((wheel: { hashes?: { sha256?: unknown } }) => {
    const sha256 = wheel.hashes?.sha256
    if (typeof sha256 !== 'string' || !SHA256.test(sha256)) throw invalid(`a wheel of ${name} has no SHA-256`)
    return sha256
  })
  const sizes = wheels.map((wheel: { size?: unknown }) => (typeof wheel.size === 'number' ? wheel.size : 0))
  return { name: normalName(name), version, hashes: hashes.toSorted(), bytes: Math.max(...sizes) }
}

/** A digest of values that JSON can represent, in the first `length` hexadecimal digits. */
export function digestOf(parts: unknown, length: number): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, length)
}

function invalid(reason: string, cause?: unknown): SandglassError {
  return new SandglassError('dependency_invalid', `the lock of the packages cannot be used: ${reason}`, { cause })
}
